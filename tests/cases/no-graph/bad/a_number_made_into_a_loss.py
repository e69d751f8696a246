import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    error = model(torch.randn(8, 4)).pow(2).mean().item()  # <- no-graph
    loss = torch.tensor(error, requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
