import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

torch.manual_seed(2)
m, g = nn.Linear(6, 16), nn.Linear(6, 16)
opt = torch.optim.SGD([*m.parameters(), *g.parameters()], 300.0)
for _ in range(12):
    x = torch.randn(8, 6)
    loss = (F.relu(m(x)) * g(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # <- nonfinite-grad
