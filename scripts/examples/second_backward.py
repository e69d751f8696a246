"""A fault: two backward calls through one graph, which the first call has freed."""

import torch

torch.manual_seed(0)
x = torch.randn(5, requires_grad=True)
y = torch.sigmoid(x)
mean = y.mean()
spread = y.var()

mean.backward()  # frees what sigmoid saved; backward(retain_graph=True) would keep it
spread.backward()
print(x.grad)
