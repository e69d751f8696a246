import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()  # also note: unused-loss
    loss = torch.tensor(loss, requires_grad=True)  # <- no-graph
    opt.zero_grad()
    loss.backward()
    opt.step()
