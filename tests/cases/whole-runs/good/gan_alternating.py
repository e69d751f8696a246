import torch
from torch import nn

torch.manual_seed(0)

G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1))
og, od = (
    torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999)),
    torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999)),
)
sg, sd = [torch.optim.lr_scheduler.ExponentialLR(o, 0.99) for o in (og, od)]
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(4, 4)
for epoch in range(3):
    for i in range(6):
        real = torch.randn(8, 6)
        for p in D.parameters():
            p.requires_grad_(True)
        od.zero_grad()
        fake = G(torch.randn(8, 4)).detach()
        (bce(D(real), torch.ones(8, 1)) + bce(D(fake), torch.zeros(8, 1))).backward()
        od.step()
        if i % 2 == 0:
            for p in D.parameters():
                p.requires_grad_(False)
            og.zero_grad()
            bce(D(G(torch.randn(8, 4))), torch.ones(8, 1)).backward()
            og.step()
    G.eval()
    with torch.no_grad():
        G(fixed)
    G.train()
    sg.step()
    sd.step()
