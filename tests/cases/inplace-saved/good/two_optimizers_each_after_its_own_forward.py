import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(4, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 4))
    loss = D(fake.detach()).mean() - D(torch.randn(8, 4)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    loss = -D(fake).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
