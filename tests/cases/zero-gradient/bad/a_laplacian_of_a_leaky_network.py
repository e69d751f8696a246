import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.out = nn.Linear(2, 16), nn.Linear(16, 1)

    def forward(self, p):
        before = self.first(p)
        h = F.leaky_relu(before, 0.1)  # <- zero-gradient
        return self.out(h)

def laplacian(field, p):
    slope, = torch.autograd.grad(field(p).sum(), p, create_graph=True)
    total = 0
    for k in range(p.shape[1]):
        total = total + torch.autograd.grad(slope[:, k].sum(), p, create_graph=True)[0][:, k]
    return total

field = Potential()
opt = torch.optim.Adam(field.parameters(), 1e-3)
for _ in range(5):
    p = torch.rand(32, 2, requires_grad=True)
    loss = (laplacian(field, p) - 1).pow(2).mean() + field(torch.rand(8, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
