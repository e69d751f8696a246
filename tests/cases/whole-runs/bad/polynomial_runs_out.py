import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.PolynomialLR(o, total_iters=5, power=0.9)
for ep in range(20):
    for _ in range(3):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()  # <- no-effect-step
    s.step()
