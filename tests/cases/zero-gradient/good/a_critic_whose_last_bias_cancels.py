import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
for _ in range(12):
    opt.zero_grad()
    (critic(torch.randn(8, 4)).mean() - critic(torch.randn(8, 4)).mean()).backward()
    opt.step()
