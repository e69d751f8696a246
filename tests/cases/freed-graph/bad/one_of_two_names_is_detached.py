import torch
from torch import nn

torch.manual_seed(0)

lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
state = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
for _ in range(3):
    h, c = state
    h = h.detach()  # <- freed-graph
    out, state = lstm(torch.randn(5, 2, 3), (h, c))
    opt.zero_grad()
    head(out).pow(2).mean().backward()
    opt.step()
