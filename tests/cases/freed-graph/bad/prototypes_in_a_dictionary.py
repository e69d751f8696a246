import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(5, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
protos = {c: torch.zeros(4) for c in range(2)}
for _ in range(3):
    z = net(torch.randn(6, 5))
    loss = sum((z - protos[c]).pow(2).mean() for c in protos)
    opt.zero_grad()
    loss.backward()
    opt.step()
    for c in protos:
        protos[c] = 0.9 * protos[c] + 0.1 * z[c::2].mean(0)  # <- freed-graph
