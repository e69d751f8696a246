import torch

torch.manual_seed(0)

w = torch.randn(3, 3, requires_grad=True)
h = torch.tanh(w)
flat = h.view(-1)
flat[0] = 0.0  # <- inplace-saved
h.sum().backward()
