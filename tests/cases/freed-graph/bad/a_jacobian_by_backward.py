import torch

torch.manual_seed(0)

x = torch.randn(3, requires_grad=True)
y = torch.sin(torch.randn(3, 3) @ x)
rows = []
for i in range(3):
    x.grad = None
    y[i].backward()  # <- freed-graph
    rows.append(x.grad.clone())
