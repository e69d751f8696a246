import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
x = torch.randn(3, requires_grad=True)
y = (w * x).sum()
w.data = w.data + 1.0  # <- hidden-write
y.backward()
