import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
for _ in range(3):
    loss = (w * 2).pow(2).sum()
    loss.backward()
    w -= 0.1 * w.grad  # <- inplace-leaf
    w.grad.zero_()
