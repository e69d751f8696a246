import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 2)
f = m(torch.randn(6, 4))
n = f.norm(dim=1, keepdim=True)
cos = (f @ f.t()) / (n * n.squeeze(1))
(n * torch.randn(6)).exp().mean().backward(retain_graph=True)
((n * torch.rand(6)) * torch.rand(6, 6)).mean().backward(retain_graph=True)
((n * torch.rand(6)) * (f @ f.t())).mean().backward(retain_graph=True)
cos.mean().backward()
