import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.value = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, s):
        return self.value(torch.relu(self.body(s))).squeeze(-1)

net = Net()
opt = torch.optim.Adam(net.parameters())

def rollout():
    rows = []
    for _ in range(4):
        v = net(torch.randn(4))
        rows.append((v, 1.0))  # <- freed-graph
    return rows

def update(rows):
    value = torch.stack([v for v, _ in rows])
    for _ in range(2):
        loss = (value - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

update(rollout())
