import torch

torch.manual_seed(0)

w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
for _ in range(3):
    loss = (torch.randn(8, 3) @ w + b).pow(2).mean()
    loss.backward()  # <- stale-grad
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
