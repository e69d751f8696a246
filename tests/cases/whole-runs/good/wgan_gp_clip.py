import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
oc, og = torch.optim.RMSprop(critic.parameters(), 5e-5), torch.optim.RMSprop(G.parameters(), 5e-5)
for it in range(20):
    x = torch.randn(8, 6)
    oc.zero_grad()
    (critic(G(torch.randn(8, 4)).detach()).mean() - critic(x).mean()).backward()
    oc.step()
    for p in critic.parameters():
        p.data.clamp_(-0.01, 0.01)
    if it % 5 == 4:
        og.zero_grad()
        (-critic(G(torch.randn(8, 4))).mean()).backward()
        og.step()
