import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
opt.zero_grad()
out = model(x)  # <- freed-graph
for i in range(4):
    rows = slice(2 * i, 2 * i + 2)
    loss = F.mse_loss(out[rows], y[rows]) / 4
    loss.backward()
opt.step()
