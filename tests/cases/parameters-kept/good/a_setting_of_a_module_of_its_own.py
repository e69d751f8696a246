import torch
from torch import nn

torch.manual_seed(0)

class Frozen(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.requires_grad = requires_grad
        self.table = nn.Linear(3, 4)
        self.scale = nn.Linear(4, 1)
        self.table.requires_grad_(requires_grad)

    def forward(self, x):
        return self.scale(self.table(x))

net = Frozen()
opt = torch.optim.SGD(net.scale.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
