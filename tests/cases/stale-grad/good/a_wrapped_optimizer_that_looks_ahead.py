import torch
from torch import nn

torch.manual_seed(0)

class Lookahead(torch.optim.Optimizer):
    def __init__(self, base, k=2, alpha=0.5):
        super().__init__([p for g in base.param_groups for p in g["params"]], {})
        self.base, self.k, self.alpha, self.n = base, k, alpha, 0
        self.slow = [p.detach().clone() for g in base.param_groups for p in g["params"]]

    def step(self):
        self.base.step()
        self.n += 1
        if self.n % self.k == 0:
            for s, p in zip(self.slow, self.param_groups[0]["params"]):
                s.add_(p.data - s, alpha=self.alpha)
                p.data.copy_(s)

model = nn.Linear(3, 1)
opt = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(5):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
