import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

feat = mlp(2, 4)
g = mlp(4, 2)
o = torch.optim.Adam(g.parameters())
feat.eval()
for _ in range(6):
    o.zero_grad()
    F.l1_loss(feat(g(torch.randn(8, 4))), feat(torch.randn(8, 2))).backward()
    o.step()
