import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
torch.clamp_(w, -1, 1)  # <- inplace-leaf
