import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(11)]

def loss_of(x, y):
    return F.mse_loss(model(x), y)

accumulate = 4
for epoch in range(3):
    for i, (x, y) in enumerate(data):
        loss = loss_of(x, y)
        loss = loss / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(data):
            opt.step()  # <- note: uneven-accumulation
            opt.zero_grad()
