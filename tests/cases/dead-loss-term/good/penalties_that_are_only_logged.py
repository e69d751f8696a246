import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.05)
total = 0.0
for _ in range(8):
    x = torch.randn(16, 4)
    loss = net(x).pow(2).mean() + 1e-3 * sum(p.norm() for p in net.parameters())
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss.detach() + sum(p.data.norm() for p in net.parameters())
    sparsity = (net.weight.data.abs() < 0.1).float().mean()
    print(float(total), float(sparsity))
