import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

b, h = nn.Linear(4, 8), nn.Linear(8, 2)
o = torch.optim.AdamW([*b.parameters(), *h.parameters()], 1e-2, weight_decay=0.1)


def zero():
    for g in o.param_groups:
        for p in g["params"]:
            if p.grad is not None:
                p.grad.zero_()


def set_trainable(m, on):
    for p in m.parameters():
        p.requires_grad = on  # <- frozen-moves


for ep in range(3):
    if ep == 1:
        set_trainable(b, False)
    for _ in range(4):
        zero()
        F.cross_entropy(h(torch.relu(b(torch.randn(8, 4)))), torch.randint(2, (8,))).backward()
        o.step()
