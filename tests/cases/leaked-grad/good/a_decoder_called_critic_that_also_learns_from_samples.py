import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

encoder = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
one = torch.optim.Adam(encoder.parameters())
two = torch.optim.Adam(critic.parameters())
for _ in range(5):
    x = torch.randn(6, 3)
    one.zero_grad()
    two.zero_grad()
    F.mse_loss(critic(encoder(x)), x).backward()
    (0.1 * critic(torch.randn(6, 2)).square().mean()).backward()
    one.step()
    two.step()
