import torch
from torch import nn

torch.manual_seed(0)

policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(policy.parameters())

def update(states, actions, advantages):
    old = torch.log_softmax(policy(states), 1).gather(1, actions)  # <- freed-graph
    for _ in range(4):
        new = torch.log_softmax(policy(states), 1).gather(1, actions)
        ratio = (new - old).exp()
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

update(torch.randn(10, 4), torch.randint(0, 2, (10, 1)), torch.randn(10, 1))
