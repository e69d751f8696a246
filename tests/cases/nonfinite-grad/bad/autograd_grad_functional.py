import torch

torch.manual_seed(0)

w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    loss = (w * w).sum().sqrt()  # <- nonfinite-grad
    g, = torch.autograd.grad(loss, w)
    w = (w - 0.1 * g.nan_to_num()).detach().requires_grad_()
