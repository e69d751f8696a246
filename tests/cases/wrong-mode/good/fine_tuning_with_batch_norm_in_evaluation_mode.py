import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def step(net, opt, x):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()

def evaluate(net):
    net.eval()
    with torch.no_grad():
        return net(torch.randn(4, 4)).mean().item()

for epoch in range(3):
    net.train()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.eval()
    for _ in range(3):
        step(net, opt, torch.randn(8, 4))
    evaluate(net)
