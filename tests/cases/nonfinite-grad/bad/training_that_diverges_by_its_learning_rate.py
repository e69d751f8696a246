import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

torch.manual_seed(1)
m = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(m.parameters(), 10.0)
for _ in range(12):
    loss = F.mse_loss(m(torch.randn(8, 6)), torch.randn(8, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()  # <- nonfinite-grad
