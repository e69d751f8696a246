import torch
from torch import nn

torch.manual_seed(0)

rnn, head = nn.LSTM(4, 8, bidirectional=True, batch_first=True), nn.Linear(16, 1)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for _ in range(6):
    out, (h, _) = rnn(torch.randn(5, 7, 4))
    opt.zero_grad()
    (head(torch.cat([h[-2], h[-1]], 1)) + head(out[:, -1])).pow(2).mean().backward()
    opt.step()
