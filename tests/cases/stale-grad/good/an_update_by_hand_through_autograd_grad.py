import torch

torch.manual_seed(0)

w = torch.randn(3, 1, requires_grad=True)
for _ in range(3):
    (g,) = torch.autograd.grad((torch.randn(8, 3) @ w).pow(2).mean(), w)
    with torch.no_grad():
        w -= 0.1 * g
