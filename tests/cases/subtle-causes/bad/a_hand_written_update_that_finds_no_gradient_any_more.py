import torch

torch.manual_seed(0)

w, b = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
for step in range(20):
    x = torch.randn(8, 4)
    h = x @ w
    if step > 10:
        h = h.detach()  # <- unreached-parameter
    loss = (h + b).square().mean()
    for p in (w, b):
        p.grad = None
    loss.backward()
    for p in (w, b):
        p.data -= 0.1 * p.grad
