import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

trunk, a, b = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1), nn.Linear(8, 3)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
for _ in range(2):
    x = torch.randn(8, 4)
    f = trunk(x)
    loss_a = F.mse_loss(a(f).squeeze(1), x.sum(1))
    loss_b = F.cross_entropy(b(f), x[:, :3].argmax(1))
    opt.zero_grad()
    loss_a.backward()  # <- freed-graph
    loss_b.backward()
    opt.step()
