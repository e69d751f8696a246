import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


class Judges(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse = mlp(8, 1), mlp(4, 1)

    def forward(self, image, small):
        return self.fine(image), self.coarse(small)

def shrink(image):
    return F.avg_pool1d(image.unsqueeze(1), 2).squeeze(1)

G, D = mlp(3, 8), Judges()
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(8):
    real, fake = torch.randn(16, 8), G(torch.randn(16, 3))
    small = shrink(fake.detach())  # <- dead-loss-term
    fine, coarse = D(fake, small)
    loss_fine, loss_coarse = F.softplus(-fine).mean(), F.softplus(-coarse).mean()
    loss = loss_fine + 0.5 * loss_coarse
    g_opt.zero_grad()
    loss.backward()
    g_opt.step()
    f1, c1 = D(fake.detach(), small)
    f2, c2 = D(real, shrink(real))
    d_loss = F.softplus(f1).mean() + F.softplus(c1).mean() + F.softplus(-f2).mean() + F.softplus(-c2).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
