import torch

torch.manual_seed(0)

w = torch.randn(4, requires_grad=True)
try:
    w.detach().add_(torch.ones(3))
except RuntimeError:
    pass
w.sum().backward()
