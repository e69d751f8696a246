import torch

torch.manual_seed(0)

h = torch.randn(4, 6, requires_grad=True) * 2
left, right = h.chunk(2, 1)
left += 1  # <- inplace-leaf
(left * right).sum().backward()
