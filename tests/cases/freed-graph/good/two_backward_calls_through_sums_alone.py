import torch

torch.manual_seed(0)

a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
s = a + b
s.sum().backward()
s.sum().backward()
