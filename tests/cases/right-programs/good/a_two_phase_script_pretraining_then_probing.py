import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(3):
    x = torch.randn(8, 4)
    opt.zero_grad()
    F.mse_loss(dec(torch.tanh(enc(x))), x).backward()
    opt.step()
enc.eval()
for p in enc.parameters():
    p.requires_grad = False
x = torch.randn(32, 4)
features = torch.tanh(enc(x))
probe = nn.Linear(3, 2)
opt = torch.optim.SGD(probe.parameters(), lr=0.1)
for epoch in range(3):
    for ids in torch.randperm(32).split(8):
        loss = F.cross_entropy(probe(features[ids]), (x[ids, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
