import torch
from torch import nn

torch.manual_seed(0)

G, Fb, D = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1)
opt_g = torch.optim.Adam([*G.parameters(), *Fb.parameters()])
opt_d = torch.optim.Adam(D.parameters())
for _ in range(2):
    a, b = torch.randn(8, 3), torch.randn(8, 3)
    fake_b = torch.tanh(G(a))
    rec_a = torch.tanh(Fb(fake_b))
    d_loss = (D(b) - 1).pow(2).mean() + D(fake_b).pow(2).mean()  # <- freed-graph
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = (D(fake_b) - 1).pow(2).mean() + (rec_a - a).abs().mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
