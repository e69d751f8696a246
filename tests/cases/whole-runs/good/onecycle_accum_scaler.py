import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 2)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=8)
sc = torch.amp.GradScaler("cpu")
for i in range(24):
    with torch.autocast("cpu", torch.bfloat16):
        l = F.cross_entropy(m(torch.randn(4, 4)), torch.randint(2, (4,))) / 4
    sc.scale(l).backward()
    if (i + 1) % 4 == 0:
        sc.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        sc.step(o)
        sc.update()
        o.zero_grad()
        s.step()
