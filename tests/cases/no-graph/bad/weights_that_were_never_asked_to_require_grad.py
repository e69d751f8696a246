import torch

torch.manual_seed(0)

w = torch.randn(3, 1)  # <- no-graph
b = torch.zeros(1)
for _ in range(2):
    loss = (torch.randn(8, 3) @ w + b).pow(2).mean()
    loss.backward()
    w = w - 0.1 * w.grad
