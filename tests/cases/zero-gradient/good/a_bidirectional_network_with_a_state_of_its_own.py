import torch
from torch import nn

torch.manual_seed(0)

rnn, head, start = nn.GRU(4, 8, bidirectional=True), nn.Linear(16, 1), nn.Parameter(torch.randn(2, 1, 8))
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters(), start])
for _ in range(6):
    out, _ = rnn(torch.randn(7, 5, 4), start.expand(-1, 5, -1).contiguous())
    opt.zero_grad()
    head(out[-1]).pow(2).mean().backward()
    opt.step()
