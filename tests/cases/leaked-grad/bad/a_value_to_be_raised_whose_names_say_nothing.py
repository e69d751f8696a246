import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

first = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
second = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
one = torch.optim.Adam(first.parameters())
two = torch.optim.Adam(second.parameters())
for _ in range(5):
    x, done, reward = torch.randn(6, 3), torch.rand(6, 2), torch.randn(6, 1)
    one.zero_grad()
    two.zero_grad()
    F.mse_loss(second(torch.cat([x, done], 1)), reward).backward()
    (-second(torch.cat([x, first(x)], 1))).mean().backward()  # <- leaked-grad
    one.step()
    two.step()
