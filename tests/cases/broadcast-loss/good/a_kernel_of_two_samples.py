import torch
from torch import nn

torch.manual_seed(0)

body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 3), nn.Linear(16, 1)  # also note: unreached-parameter
params = [*body.parameters(), *policy.parameters(), *value.parameters()]
opt = torch.optim.Adam(params)

def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

def kernel(a, b):
    return torch.exp(-((a[:, None] - b) ** 2)).mean()

for _ in range(4):
    a, b = value(body(torch.randn(16, 4))).squeeze(1), torch.randn(16)
    update(kernel(a, a) - 2 * kernel(a, b) + kernel(b, b))
