import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(F.dropout(self.a(x), 0.3, training=True))

net = Net()
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
net.eval()
with torch.no_grad():
    [net(torch.randn(4, 4)) for _ in range(5)]
