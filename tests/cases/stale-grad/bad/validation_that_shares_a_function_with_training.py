import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def run(data, optimizer=None):
    losses = []
    for x in data:
        loss = model(x).pow(2).mean()
        loss.backward()  # <- stale-grad
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return sum(losses)

for epoch in range(3):
    model.train()
    run([torch.randn(8, 3) for _ in range(4)], opt)
    model.eval()
    run([torch.randn(8, 3) for _ in range(2)])
