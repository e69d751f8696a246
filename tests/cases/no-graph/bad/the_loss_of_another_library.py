import torch
from torch import nn

torch.manual_seed(0)

def mean_squared_error(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)

model = nn.Linear(4, 1)
out = model(torch.randn(8, 4)).squeeze(1)
loss = torch.tensor(mean_squared_error(out.tolist(), [0.0] * 8))  # <- no-graph
loss.backward()
