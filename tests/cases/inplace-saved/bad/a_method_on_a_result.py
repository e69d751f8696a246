import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
y = torch.exp(w)
y.mul_(2)  # <- inplace-saved
y.sum().backward()
