import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

def contrastive(a, b):
    scale = nn.Parameter(torch.tensor(2.6)).exp()  # <- unoptimized-parameter
    return F.cross_entropy(scale * a @ b.t(), torch.arange(len(a)))

m = mlp(4, 8)
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x = torch.randn(8, 4)
    loss = contrastive(m(x), m(x + 0.1))
    o.zero_grad()
    loss.backward()
    o.step()
