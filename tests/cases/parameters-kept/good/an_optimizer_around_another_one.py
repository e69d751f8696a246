import torch
from torch import nn

torch.manual_seed(0)

class Lookahead(torch.optim.Optimizer):
    def __init__(self, base):
        self.base, self.k = base, 0
        super().__init__(base.param_groups, {})

    @torch.no_grad()
    def step(self, closure=None):
        self.base.step()
        self.k += 1

net = nn.Linear(3, 1)
opt = Lookahead(torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(6):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
