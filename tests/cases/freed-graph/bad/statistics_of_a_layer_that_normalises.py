import torch
from torch import nn

torch.manual_seed(0)

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.mean, self.scale = torch.zeros(d), nn.Parameter(torch.ones(d))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)  # <- freed-graph
        return (x - self.mean) * self.scale

net = nn.Sequential(nn.Linear(3, 4), Norm(4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
