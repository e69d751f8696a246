import torch
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

taus = (torch.arange(8) + 0.5) / 8

def huber(pred, target):
    u = target.unsqueeze(0) - pred.unsqueeze(1)
    return ((taus.unsqueeze(1) - (u.detach() < 0).float()).abs() * u.abs()).mean()

quantiles = nn.Linear(16, 8)
opt.add_param_group({"params": list(quantiles.parameters())})
for _ in range(4):
    update(huber(quantiles(body(torch.randn(1, 4)))[0], torch.randn(8)))
