import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 3), nn.Linear(16, 1)  # also note: unreached-parameter
params = [*body.parameters(), *policy.parameters(), *value.parameters()]
opt = torch.optim.Adam(params)

def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

def column(t):
    return t.unsqueeze(1)

def ranking(scores, labels):
    wins = torch.sign(column(labels) - labels)
    return F.softplus(-(column(scores) - scores) * wins).mean()

for _ in range(4):
    x = torch.randn(16, 4)
    update(ranking(value(body(x)).squeeze(1), torch.randn(16)))
