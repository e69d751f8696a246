import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

for episode in range(6):
    log_probs = []
    for _ in range(40 + 20 * episode):
        log_probs.append(nn.functional.logsigmoid(model(torch.randn(1, 3))).sum())
    optimizer.zero_grad()
    (-torch.stack(log_probs).sum()).backward()
    optimizer.step()
