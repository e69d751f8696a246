import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
opt.zero_grad()
for part in model(torch.randn(8, 3)).chunk(4):
    loss = part.pow(2).mean()
    loss.backward()  # <- freed-graph
opt.step()
