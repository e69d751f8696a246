import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Linear(3, 1)
opt_g, opt_d = torch.optim.RMSprop(G.parameters()), torch.optim.RMSprop(D.parameters())
for _ in range(2):
    fake = G(torch.randn(8, 2))
    for _ in range(5):
        d_loss = D(fake).mean() - D(torch.randn(8, 3)).mean()  # <- freed-graph
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(8, 2))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
