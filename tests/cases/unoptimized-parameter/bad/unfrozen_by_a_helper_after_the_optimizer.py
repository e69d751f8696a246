import torch
from torch import nn

torch.manual_seed(0)


def set_trainable(module, flag):
    for parameter in module.parameters():
        parameter.requires_grad_(flag)


class Tuner:
    def __init__(self):
        self.base, self.top = nn.Linear(5, 8), nn.Linear(8, 1)
        set_trainable(self.base, False)
        wanted = [one for one in [*self.base.parameters(), *self.top.parameters()] if one.requires_grad]
        self.optimizer = torch.optim.SGD(wanted, lr=0.1)

    def fit(self, steps):
        for _ in range(steps):
            x = torch.randn(8, 5)
            loss = (self.top(torch.tanh(self.base(x))) - x[:, :1]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def unfreeze(self):
        set_trainable(self.base, flag=True)  # <- unoptimized-parameter


tuner = Tuner()
tuner.fit(3)
tuner.unfreeze()
tuner.fit(6)
