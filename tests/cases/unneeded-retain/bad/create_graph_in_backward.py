import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = torch.tanh(model(torch.randn(8, 3))).mean()
    opt.zero_grad()
    loss.backward(create_graph=True)  # <- unneeded-retain
    opt.step()
