import torch

torch.manual_seed(0)

x = torch.randn(3, requires_grad=True)
y = x.exp().sum()
y.backward(retain_graph=True)
first = x.grad.clone()
x.grad.zero_()
y.backward()
