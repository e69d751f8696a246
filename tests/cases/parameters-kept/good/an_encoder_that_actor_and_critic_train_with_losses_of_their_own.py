import torch
from torch import nn

torch.manual_seed(0)

body, pi, v = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)
a_opt = torch.optim.Adam([*body.parameters(), *pi.parameters()])
c_opt = torch.optim.Adam([*body.parameters(), *v.parameters()])
for _ in range(6):
    x = torch.randn(8, 3)
    c_opt.zero_grad()
    v(body(x)).pow(2).mean().backward()
    c_opt.step()
    a_opt.zero_grad()
    pi(body(x)).pow(2).mean().backward()
    a_opt.step()
