import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

rnn, head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
state = None
for _ in range(8):
    x = torch.randn(4, 5, 3)
    out, state = rnn(x, state)
    state = state.detach()
    loss = F.mse_loss(head(out), x.sum(2, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
