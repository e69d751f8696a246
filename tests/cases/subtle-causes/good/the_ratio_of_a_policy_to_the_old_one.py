import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

actor = mlp(4, 3)
opt = torch.optim.Adam(actor.parameters())
states, actions, advantage = torch.randn(32, 4), torch.randint(3, (32,)), torch.randn(32)
with torch.no_grad():
    before = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
for epoch in range(10):
    now = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
    opt.zero_grad()
    (-(torch.exp(now - before) * advantage).mean()).backward()
    opt.step()
