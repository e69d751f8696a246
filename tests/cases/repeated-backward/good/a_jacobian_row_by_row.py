import torch

torch.manual_seed(0)

x = torch.randn(3, requires_grad=True)
y = torch.sin(torch.randn(3, 3) @ x)
rows = []
for i in range(3):
    y.backward(torch.eye(3)[i], retain_graph=True)
    rows.append(x.grad.clone())
    x.grad.zero_()
