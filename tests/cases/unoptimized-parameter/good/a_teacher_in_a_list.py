import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = mlp()
        self._teacher = [mlp().eval()]
    def forward(self, x):
        return F.mse_loss(self.student(x), self._teacher[0](x))

m = D()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).backward()  # also note: leaked-grad
    o.step()
