import torch

torch.manual_seed(0)

w = torch.randn(4, 3, requires_grad=True)
wt, row = w.t(), w[0]
for _ in range(3):
    loss = (torch.randn(5, 4) @ w).mean() + (torch.randn(5, 3) @ wt).pow(2).mean() + row.sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
