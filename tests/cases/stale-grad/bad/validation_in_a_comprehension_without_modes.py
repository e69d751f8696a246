import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def compute(x, optimizer):
    loss = model(x).pow(2).mean()
    loss.backward()  # <- stale-grad
    if optimizer:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()

def run(data, optimizer):
    return sum([compute(x, optimizer) for x in data])

for epoch in range(3):
    run([torch.randn(8, 3) for _ in range(4)], opt)
    run([torch.randn(8, 3) for _ in range(2)], None)
