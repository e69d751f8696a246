import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
penalty = sum(p.pow(2).sum() for p in model.parameters())  # <- freed-graph
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    loss = F.mse_loss(model(x), y) + 1e-3 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
