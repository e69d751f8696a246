import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 2)
o = torch.optim.AdamW(m.parameters(), 5e-3)


def get_linear_schedule_with_warmup(opt, w, t):
    def f(s):
        return s / max(1, w) if s < w else max(0.0, (t - s) / max(1, t - w))

    return torch.optim.lr_scheduler.LambdaLR(opt, f)


ACC = 4
N = 32
EP = 2
sch = get_linear_schedule_with_warmup(o, 2, N * EP // ACC)
for ep in range(EP):
    for step in range(N):
        l = F.cross_entropy(m(torch.randn(4, 4)), torch.randint(2, (4,))) / ACC
        l.backward()
        if (step + 1) % ACC == 0:
            o.step()
            o.zero_grad()
        sch.step()  # <- scheduler-steps
