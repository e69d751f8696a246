import torch
from torch import nn

torch.manual_seed(0)

class Proximal(torch.optim.SGD):
    def step(self, closure=None):
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.copy_(p.sign() * (p.abs() - 1e-3).clamp(min=0))
        return loss

model = nn.Linear(3, 1)
opt = Proximal(model.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()

def closure():
    opt.zero_grad()
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()
    return loss

for _ in range(4):
    opt.step(closure)
