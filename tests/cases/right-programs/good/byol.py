import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

online, predictor = nn.Linear(6, 4), nn.Linear(4, 4)
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad = False
opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()])
for _ in range(4):
    x = torch.randn(8, 6)
    v1, v2 = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    p1, p2 = predictor(online(v1)), predictor(online(v2))
    with torch.no_grad():
        t1, t2 = target(v1), target(v2)
    loss = 4 - 2 * (F.cosine_similarity(p1, t2).mean() + F.cosine_similarity(p2, t1).mean())
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(online.parameters(), target.parameters()):
            b.lerp_(a, 0.01)
