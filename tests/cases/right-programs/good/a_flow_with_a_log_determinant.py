import torch
from torch import nn

torch.manual_seed(0)

class Coupling(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        return torch.cat([b * s.exp() + t, a], 1), s.sum(1)

flow = nn.ModuleList(Coupling() for _ in range(2))
opt = torch.optim.Adam(flow.parameters())
for _ in range(3):
    x, total = torch.randn(8, 4), 0
    for layer in flow:
        x, logdet = layer(x)
        total = total + logdet
    loss = (0.5 * x.pow(2).sum(1) - total).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
