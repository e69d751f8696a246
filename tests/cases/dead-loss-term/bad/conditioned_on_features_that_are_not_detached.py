import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

class Gan:
    def __init__(self):
        self.enc, self.gen, self.disc = mlp(4, 3), mlp(5, 4), mlp(7, 1)
        self.g_opt = torch.optim.Adam([*self.enc.parameters(), *self.gen.parameters()])
        self.d_opt = torch.optim.Adam(self.disc.parameters())
    def judge(self, image, f):
        return self.disc(torch.cat([image, f], 1))
    def step(self, x, target):
        f = self.enc(x)
        fake = self.gen(torch.cat([f, torch.randn(len(x), 2)], 1))
        frozen = fake.detach()  # <- dead-loss-term
        g_adv = -self.judge(frozen, f).mean()
        g_rec = (fake - target).abs().mean()
        self.g_opt.zero_grad()
        (g_adv + 5 * g_rec).backward()
        self.g_opt.step()
        d = self.judge(fake.detach(), f.detach()).mean() - self.judge(target, f.detach()).mean()
        self.d_opt.zero_grad()
        d.backward()
        self.d_opt.step()

gan = Gan()
for _ in range(8):
    gan.step(torch.randn(8, 4), torch.randn(8, 4))
