import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

actor, critic = mlp(4, 4), mlp(4)
opt = torch.optim.Adam(actor.parameters())
state = torch.randn(8, 4)

def act(state):
    with torch.no_grad():
        return state + actor(state)

def train(state):
    with torch.no_grad():  # <- no-graph
        loss = -critic(actor(state)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

for _ in range(4):
    state = act(state)
    train(state)
