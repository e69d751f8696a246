import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for _ in range(8):
    opt.zero_grad()
    loss = criterion(net(torch.randn(16, 8)), torch.zeros(16, dtype=torch.long))  # <- zero-gradient
    loss.backward()
    opt.step()
