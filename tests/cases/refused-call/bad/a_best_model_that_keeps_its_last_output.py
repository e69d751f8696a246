import copy

import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, x):
        self.features = self.body(x)
        return self.features.pow(2).mean()

net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    loss = net(torch.randn(8, 4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = copy.deepcopy(net)  # <- refused-call
