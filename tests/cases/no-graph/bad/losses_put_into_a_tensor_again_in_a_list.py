import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    out = model(torch.randn(8, 4))
    parts = torch.tensor([out[:, 0].pow(2).mean(), out[:, 1].abs().mean()], requires_grad=True)  # <- no-graph  # also note: unused-loss
    loss = parts.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
