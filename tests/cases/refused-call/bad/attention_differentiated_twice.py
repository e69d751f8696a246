import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

qkv = nn.Linear(4, 12)
opt = torch.optim.SGD(qkv.parameters(), 0.1)
x = torch.randn(1, 5, 4, requires_grad=True)
q, k, v = qkv(x).chunk(3, -1)
out = F.scaled_dot_product_attention(q[None], k[None], v[None])
slope, = torch.autograd.grad(out.pow(2).sum(), x, create_graph=True)
slope.norm().backward()  # <- refused-call
opt.step()
