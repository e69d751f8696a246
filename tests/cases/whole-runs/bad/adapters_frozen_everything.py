import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, ad = nn.Linear(4, 8), nn.Linear(8, 2)


def freeze(*ms):
    for k in ms:
        for p in k.parameters():
            p.requires_grad_(False)


freeze(enc, ad)
prompt = nn.Parameter(torch.randn(4) * 0.1)
o = torch.optim.Adam(list(enc.parameters()) + list(ad.parameters()), 1e-3)
for _ in range(8):
    o.zero_grad()
    l = F.cross_entropy(ad(torch.relu(enc(torch.randn(8, 4) + prompt))), torch.randint(2, (8,)))
    l.backward()
    o.step()  # <- step-without-grad
