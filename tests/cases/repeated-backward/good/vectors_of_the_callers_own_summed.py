import torch

torch.manual_seed(0)

x = torch.randn(3, requires_grad=True)
y = torch.sin(torch.randn(3, 3) @ x)
for row in torch.eye(3):
    y.backward(row, retain_graph=True)
