import torch
from torch import nn

torch.manual_seed(0)


def median_of(values):
    values.sort(axis=0)
    return values[len(values) // 2].mean()


trunk, top = nn.Linear(5, 9), nn.Linear(9, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *top.parameters()], lr=0.1)
medians = []
for _ in range(6):
    x = torch.randn(12, 5)
    hidden = torch.tanh(trunk(x))
    out = top(hidden)
    medians.append(median_of(hidden.data.numpy()))  # <- hidden-write
    loss = (out - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
