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

def collect():
    rewards = torch.randn(16)
    returns = rewards.flip(0).cumsum(0).flip(0)
    return returns.unsqueeze(1)

def policy_loss(log_prob, advantages):
    return -(log_prob * advantages).mean()  # <- broadcast-loss

for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = collect()
    update(policy_loss(log_prob, returns) + F.mse_loss(v, returns))
