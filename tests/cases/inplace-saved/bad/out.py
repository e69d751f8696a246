import torch

torch.manual_seed(0)

w = torch.randn(3, 3, requires_grad=True)
mask = torch.ones(3, 3)
kept = w * mask
torch.mul(mask, 0.5, out=mask)  # <- inplace-saved
kept.sum().backward()
