import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.01)


def centralize(ps):
    for p in ps:
        if p.grad is not None:
            p.grad = (p.grad - p.grad.mean()) / p.grad.std()  # <- nonfinite-grad


for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    centralize(m.parameters())
    o.step()
