import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)

actor, critic = (
    nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh()),
    nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)),
)
ta, tc = copy.deepcopy(actor), copy.deepcopy(critic)
oa, oc = torch.optim.Adam(actor.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
buf = []
for t in range(60):
    s = torch.randn(3)
    actor.eval()
    with torch.no_grad():
        a = actor(s) + 0.1 * torch.randn(1)
    actor.train()
    buf.append((s, a, torch.randn(1), torch.randn(3)))
    if t > 20:
        S, A, R, N = [torch.stack(z) for z in zip(*random.sample(buf, 8))]
        with torch.no_grad():
            y = R + 0.99 * tc(torch.cat([N, ta(N)], 1))
        lc = F.mse_loss(critic(torch.cat([S, A], 1)), y)
        oc.zero_grad()
        lc.backward()
        oc.step()
        la = -critic(torch.cat([S, actor(S)], 1)).mean()
        oa.zero_grad()
        la.backward()
        oa.step()
        for x, z in ((ta, actor), (tc, critic)):
            for p, q in zip(x.parameters(), z.parameters()):
                p.data.copy_(0.99 * p.data + 0.01 * q.data)
