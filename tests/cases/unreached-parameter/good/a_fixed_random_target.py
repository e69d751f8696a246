import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class RND(nn.Module):
    def __init__(self):
        super().__init__()
        self.target = mlp()
        self.predictor = mlp()
    def forward(self, x):
        with torch.no_grad():  # also note: unreached-parameter
            t = self.target(x)
        return F.mse_loss(self.predictor(x), t)

m = RND()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).backward()
    o.step()
