import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Gan:
    def __init__(self):
        self.g, self.d = nn.Linear(2, 3), nn.Linear(3, 1)
        self.opt_g = torch.optim.Adam(self.g.parameters())
        self.opt_d = torch.optim.Adam(self.d.parameters())

    def step(self, real):
        fake = torch.tanh(self.g(torch.randn(8, 2)))
        g_loss = F.softplus(-self.d(fake)).mean()
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()
        d_real, d_fake = self.d(real), self.d(fake)  # <- freed-graph
        d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()

gan = Gan()
for _ in range(2):
    gan.step(torch.randn(8, 3))
