import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = mlp()
        self.slow = mlp()
        self.slow.load_state_dict(self.online.state_dict())
    @torch.no_grad()
    def update(self):
        for p, q in zip(self.online.parameters(), self.slow.parameters()):
            q.data.mul_(0.9).add_(p.data, alpha=0.1)
    def forward(self, x):
        with torch.no_grad():
            t = self.slow(x)
        return F.mse_loss(self.online(x), t + 1)

m = B()
o = torch.optim.Adam(m.parameters(), 0.01)
for _ in range(8):
    o.zero_grad()
    m(torch.randn(8, 4)).backward()
    o.step()
    m.update()
