import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


class Trainer:
    def __init__(self):
        self.enc, self.dec = mlp(4, 2), mlp(2, 4)
        self.opt = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()])
        self.log = {}

    def step(self, x):
        z = self.enc(x)
        self.log["rec"] = F.mse_loss(self.dec(z), x)
        self.log["reg"] = z.pow(2).mean()
        self.log["total"] = self.log["rec"] + 0.1 * self.log["reg"]  # <- unused-loss
        self.opt.zero_grad()
        self.log["rec"].backward()
        self.opt.step()

trainer = Trainer()
for step in range(10):
    trainer.step(torch.randn(16, 4))
    print(step, {name: round(value.item(), 3) for name, value in trainer.log.items()})
