import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.05)
for _ in range(10):
    ridge = net.weight.data.pow(2).sum()  # <- dead-loss-term
    loss = net(torch.randn(8, 6)).pow(2).mean() + 0.01 * ridge
    opt.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.grad.clamp_(-1.0, 1.0)
    opt.step()
    print(loss.item())
