import torch
from torch import nn

torch.manual_seed(0)

class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)


m = AC()
oa = torch.optim.Adam([*m.body.parameters(), *m.pi.parameters()], 1e-3)
oc = torch.optim.Adam([*m.body.parameters(), *m.v.parameters()], 1e-3)
for _ in range(6):
    h = torch.tanh(m.body(torch.randn(8, 4)))
    l = m.pi(h).logsumexp(1).mean() + m.v(h).pow(2).mean()
    oa.zero_grad()
    oc.zero_grad()
    l.backward()
    oa.step()
    oc.step()  # <- duplicate-parameter
