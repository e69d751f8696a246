import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.RMSprop(G.parameters(), lr=1e-3), torch.optim.RMSprop(D.parameters(), lr=1e-3)
for _ in range(3):
    for _ in range(2):
        opt_d.zero_grad()
        loss = D(G(torch.randn(8, 4)).detach()).mean() - D(torch.randn(8, 4)).mean()
        loss.backward()
        opt_d.step()
        for p in D.parameters():
            p.data.clamp_(-0.05, 0.05)
    opt_g.zero_grad()
    loss = -D(G(torch.randn(8, 4))).mean()
    loss.backward()
    opt_g.step()
