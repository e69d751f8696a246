import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    kept = [p.data.clone() for p in net.parameters()]
    for p in net.parameters():
        p.data.add_(0.1 * torch.randn_like(p))
    for p, values in zip(net.parameters(), kept):
        p.data.copy_(values)
    opt.zero_grad()
    loss.backward()
    opt.step()
