import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


online, predictor = mlp(4, 3), nn.Linear(3, 3)
slow = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()])
for _ in range(8):
    x = torch.randn(16, 4)
    a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    loss = 0
    for one, other in ((a, b), (b, a)):
        loss = loss + 2 - 2 * F.cosine_similarity(predictor(online(one)), slow(other).detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, s in zip(online.parameters(), slow.parameters()):
            s.lerp_(p, 0.01)
