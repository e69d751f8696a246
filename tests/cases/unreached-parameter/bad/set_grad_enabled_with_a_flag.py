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
    train_body = step < 10
    with torch.set_grad_enabled(train_body):  # <- note: unreached-parameter
        h = net.features(torch.randn(8, 4))
    loss = net.head(h).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
