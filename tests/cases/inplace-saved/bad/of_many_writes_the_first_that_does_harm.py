import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
scale = torch.ones(3)
scale.mul_(2)
y = w * scale
scale.add_(1)  # <- inplace-saved
scale.zero_()
y.sum().backward()
