import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.05)
for _ in range(10):
    ridge = net.weight.data.pow(2).sum()
    loss = net(torch.randn(8, 6)).pow(2).mean() + 0.01 * ridge
    opt.zero_grad()
    loss.backward()
    with torch.no_grad():
        net.weight.grad.add_(net.weight, alpha=0.02)
    opt.step()
    print(loss.item())
