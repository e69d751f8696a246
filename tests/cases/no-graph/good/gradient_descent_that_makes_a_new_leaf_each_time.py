import torch

torch.manual_seed(0)

w = torch.randn(2, requires_grad=True)
for _ in range(3):
    loss = (w - 1).pow(2).sum()
    loss.backward()
    w = (w - 0.1 * w.grad).detach().requires_grad_()
