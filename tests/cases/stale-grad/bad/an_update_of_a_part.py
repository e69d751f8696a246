import torch

torch.manual_seed(0)

w = torch.randn(3, 2, requires_grad=True)
for _ in range(3):
    (torch.randn(8, 3) @ w).pow(2).mean().backward()  # <- stale-grad
    w.data[0] -= 0.1 * w.grad[0]
