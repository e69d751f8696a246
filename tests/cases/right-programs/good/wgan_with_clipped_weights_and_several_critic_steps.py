import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.RMSprop(G.parameters(), 5e-4), torch.optim.RMSprop(D.parameters(), 5e-4)
one, minus = torch.tensor(1.0), torch.tensor(-1.0)
for step in range(3):
    for p in D.parameters():
        p.requires_grad = True
    for _ in range(5):
        for p in D.parameters():
            p.data.clamp_(-0.1, 0.1)
        D.zero_grad()
        D(torch.randn(8, 3)).mean().backward(minus)
        D(G(torch.randn(8, 2)).detach()).mean().backward(one)
        opt_d.step()
    for p in D.parameters():
        p.requires_grad = False
    G.zero_grad()
    D(G(torch.randn(8, 2))).mean().backward(minus)
    opt_g.step()
