import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(8, 1), torch.zeros(8, 1)
for _ in range(2):
    real, fake = torch.randn(8, 3), G(torch.randn(8, 2))
    opt_d.zero_grad()
    loss_real = bce(D(real), ones)
    loss_fake = bce(D(fake), zeros)  # <- freed-graph
    (loss_real + loss_fake).backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = bce(D(fake), ones)
    loss_g.backward()
    opt_g.step()
