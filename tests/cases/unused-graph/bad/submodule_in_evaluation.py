import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batches(count):
    return [(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(count)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 2)

    def forward(self, x):
        for _ in range(3):
            x = torch.cat([x[:, :1], self.body(x)], 1)
        return x

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(2, 3)).sum().backward()
opt.step()
net.eval()
errors = []
for x, _ in batches(10):
    errors.append(float(net(x).abs().mean()))  # <- unused-graph
