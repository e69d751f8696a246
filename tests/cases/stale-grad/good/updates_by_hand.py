import torch

torch.manual_seed(0)

w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for _ in range(3):
    (torch.randn(8, 3) @ w + b).pow(2).mean().backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad.zero_()
