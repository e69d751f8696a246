import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = mlp(4, 4), nn.Linear(4, 1)
        self.calls = 0
    def features(self, x):
        return self.body(x)
    def forward(self, x):
        self.calls += 1
        return self.head(self.features(x))

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(24):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

opt = torch.optim.Adam(net.head.parameters(), 1e-2)

def fit(features):
    for step in range(12):
        loss = net.head(features(torch.randn(8, 4))).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

fit(lambda x: net.body(x).detach())
