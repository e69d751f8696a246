import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(11)]

def loss_of(x, y):
    return F.mse_loss(model(x), y)

for epoch in range(3):
    for start in range(0, 11, 4):
        window = data[start:start + 4]
        for x, y in window:
            (loss_of(x, y) / len(window)).backward()
        opt.step()
        opt.zero_grad()
