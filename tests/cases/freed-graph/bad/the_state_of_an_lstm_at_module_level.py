import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
state = None
for _ in range(3):
    x, y = torch.randn(5, 2, 3), torch.randn(5, 2, 1)
    out, state = lstm(x, state)  # <- freed-graph
    loss = F.mse_loss(head(out), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
