import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))

model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.v, self.d = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    def forward(self, h):
        return self.d(torch.sigmoid(self.q(h)) * self.v(h))

trunk, head = net(3, 4), Head()
t_opt, h_opt = torch.optim.Adam(trunk.parameters()), torch.optim.Adam(head.parameters())
for x, y in data:
    t_opt.zero_grad()
    h_opt.zero_grad()
    F.mse_loss(head(trunk(x)), y).backward()
    (0.1 * F.mse_loss(head(torch.randn(5, 4)), y)).backward()
    t_opt.step()
    h_opt.step()
