import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Linear(3, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
value = critic(torch.randn(3)).exp()
for t in range(3):
    next_value = critic(torch.randn(3)).exp()
    delta = 1.0 + 0.9 * next_value - value  # <- freed-graph
    opt.zero_grad()
    delta.pow(2).sum().backward()
    opt.step()
    value = next_value
