import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)

log_probs = []
for i in range(120):
    log_probs.append(model(torch.randn(1, 3)).sum())
    if i % 20 == 19:
        opt.zero_grad()
        torch.stack(log_probs).sum().backward()
        opt.step()
        log_probs.clear()
