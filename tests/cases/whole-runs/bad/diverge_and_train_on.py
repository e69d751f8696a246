import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
o = torch.optim.SGD(m.parameters(), 50.0)


def epoch():
    t = 0.0
    for _ in range(20):
        l = F.mse_loss(m(10 * torch.randn(8, 4)), torch.randn(8, 1))
        o.zero_grad()
        l.backward()
        o.step()  # <- nonfinite-grad
        t += l.item()
    return t


for _ in range(3):
    epoch()
