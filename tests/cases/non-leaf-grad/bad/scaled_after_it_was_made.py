import torch

torch.manual_seed(0)

x = torch.randn(3, requires_grad=True) * 0.1  # <- non-leaf-grad
for _ in range(1):
    l = (x ** 2).sum()
    l.backward()
print(x.grad)
