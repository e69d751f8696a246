import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
center = torch.zeros(4)
for _ in range(3):
    z = net(torch.randn(10, 3))
    loss = torch.cosh(z - center).mean()
    center.mul_(0.9).add_(0.1 * z.mean(0))  # <- freed-graph
    opt.zero_grad()
    loss.backward()
    opt.step()
