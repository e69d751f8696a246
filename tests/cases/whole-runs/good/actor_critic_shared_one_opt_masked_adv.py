import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(4, 16)
        self.p = nn.Linear(16, 2)
        self.v = nn.Linear(16, 1)

    def forward(self, x):
        h = torch.tanh(self.b(x))
        return torch.distributions.Categorical(logits=self.p(h)), self.v(h).squeeze(-1)


m = AC()
o = torch.optim.Adam(m.parameters())
for it in range(6):
    S = torch.randn(32, 4)
    with torch.no_grad():
        d, v = m(S)
        a = d.sample()
        lp = d.log_prob(a)
    R = torch.randn(32)
    adv = R - v
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(2):
        d, v = m(S)
        r = (d.log_prob(a) - lp).exp()
        l = (
            -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()
            + 0.5 * F.mse_loss(v, R)
            - 0.01 * d.entropy().mean()
        )
        o.zero_grad()
        l.backward()
        o.step()
