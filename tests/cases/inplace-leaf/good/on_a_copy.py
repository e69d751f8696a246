import torch

torch.manual_seed(0)

w = torch.randn(4, 3, requires_grad=True)
x = w.clone()
x[0] = 0.0
x.view(-1)[3] += 1
x.sum().backward()
