import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    p = torch.sigmoid(net(torch.randn(4, 3)))
    p.data.clamp_(0.4, 0.6)  # <- hidden-write
    loss = p.log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
