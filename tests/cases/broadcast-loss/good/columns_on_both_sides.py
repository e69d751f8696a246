import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 3), nn.Linear(16, 1)
params = [*body.parameters(), *policy.parameters(), *value.parameters()]
opt = torch.optim.Adam(params)

def act(obs):
    dist = torch.distributions.Categorical(logits=policy(body(obs)))
    actions = dist.sample()
    return dist.log_prob(actions), value(body(obs))

def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = torch.randn(16)
    adv = returns[:, None] - v.detach()
    update(-(log_prob[:, None] * adv).mean() + F.mse_loss(v, returns[:, None]))
