import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


q, target = mlp(4, 2), None
target = copy.deepcopy(q)
opt, replay = torch.optim.Adam(q.parameters()), deque(maxlen=50)
s = torch.randn(4)
for step in range(20):
    with torch.no_grad():
        a = q(s).argmax().item()
    s2 = torch.randn(4)
    replay.append((s, a, s2.sum().item(), s2))
    s = s2
    if len(replay) >= 8:
        ss, aa, rr, nn2 = zip(*random.sample(list(replay), 8))
        now = q(torch.stack(ss)).gather(1, torch.tensor(aa).unsqueeze(1)).squeeze(1)
        goal = torch.tensor(rr) + 0.9 * target(torch.stack(nn2)).max(1).values.detach()
        loss = F.smooth_l1_loss(now, goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if step % 5 == 0:
        target.load_state_dict(q.state_dict())
