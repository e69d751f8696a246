import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(6)]

try:
    for i, (x, y) in enumerate(data):
        F.mse_loss(model(x), y).backward()
        if i == 5:
            opt.step()
finally:
    pass
