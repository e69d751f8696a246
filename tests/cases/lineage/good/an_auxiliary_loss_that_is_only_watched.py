import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


body, head, probe = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()])
for _ in range(8):
    x = torch.randn(16, 4)
    h = body(x)
    loss = F.mse_loss(head(h), x[:, :1])
    with torch.no_grad():
        aux = F.cross_entropy(probe(h), torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), aux.item())
