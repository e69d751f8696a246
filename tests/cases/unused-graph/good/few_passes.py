import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batches(count):
    return [(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(count)]


def train():
    model.train()
    for x, y in batches(3):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

for _ in range(3):
    train()
    model.eval()
    for x, y in batches(2):
        print(F.cross_entropy(model(x), y).item())
