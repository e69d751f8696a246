import torch
from torch import nn

torch.manual_seed(0)

class Momentum:
    def __init__(self, params, lr=0.1):
        self.params, self.lr = list(params), lr
        self.velocity = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity):
            v.mul_(0.9).add_(p.grad)
            p.add_(v, alpha=-self.lr)

model = nn.Linear(3, 1)
opt = Momentum(model.parameters())
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()  # <- stale-grad
    opt.step()
