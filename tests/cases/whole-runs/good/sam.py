import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class SAM(torch.optim.Optimizer):
    def __init__(self, ps, base, rho=0.05, **k):
        super().__init__(ps, dict(rho=rho, **k))
        self.b = base(self.param_groups, **k)
        self.param_groups = self.b.param_groups

    @torch.no_grad()
    def first_step(self):
        n = torch.norm(torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]))
        for g in self.param_groups:
            for p in g["params"]:
                e = p.grad * g.get("rho", 0.05) / (n + 1e-12)
                p.add_(e)
                self.state[p]["e"] = e
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(self.state[p]["e"])
        self.b.step()
        self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError


m = nn.Linear(4, 2)
o = SAM(m.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(8):
    x, y = torch.randn(8, 4), torch.randint(2, (8,))
    F.cross_entropy(m(x), y).backward()
    o.first_step()
    F.cross_entropy(m(x), y).backward()
    o.second_step()
