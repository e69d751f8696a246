import torch
from torch import nn

torch.manual_seed(0)

q, pi = nn.Linear(4, 1), nn.Linear(4, 1)
trunk = nn.Linear(4, 4)
opt = torch.optim.Adam([*trunk.parameters(), *q.parameters(), *pi.parameters()])
for _ in range(4):
    h = trunk(torch.randn(8, 4))
    q_loss = q(h).pow(2).mean() + h.pow(2).mean()
    q_loss = torch.tensor(q_loss.item(), requires_grad=True)  # <- no-graph  # also unreached-parameter
    pi_loss = -pi(h).mean()
    opt.zero_grad()
    q_loss.backward()
    pi_loss.backward()
    opt.step()
