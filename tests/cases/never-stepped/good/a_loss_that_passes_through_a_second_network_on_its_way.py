import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(3, 2), nn.Linear(2, 1)
a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for step in range(8):
    a_opt.zero_grad()
    (-critic(actor(torch.randn(4, 3))).mean()).backward()  # also note: never-stepped
    a_opt.step()
    if step > 100:
        c_opt.step()
