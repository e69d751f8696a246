import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
for _ in range(3):
    x = torch.randn(5, 3)
    (inner,) = torch.autograd.grad((x @ w).tanh().sum(), w, create_graph=True)
    (outer,) = torch.autograd.grad((w - 0.1 * inner).pow(2).sum(), w, create_graph=True)  # <- unneeded-retain
    with torch.no_grad():
        w -= 0.01 * outer
