import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

q, target = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.Adam(q.parameters())
s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
goal = r + 0.9 * torch.tanh(q(s2)).max(1).values  # <- freed-graph  # also note: attached-target
for _ in range(3):
    loss = F.mse_loss(q(s)[:, 0], goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
