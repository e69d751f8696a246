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

cell, policy, critic = nn.GRUCell(3, 4), nn.Linear(4, 1), nn.Linear(3, 1)
slow = torch.optim.Adam([*cell.parameters(), *policy.parameters()])
fast = torch.optim.SGD(critic.parameters(), lr=0.01)
for _ in range(2):
    state, scores, errors = torch.zeros(1, 4), [], []
    for x in torch.randn(12, 1, 3):
        state = cell(x, state)
        scores.append(policy(state))
        error = critic(x) - 1
        errors.append(error.detach())
        fast.zero_grad()
        error.pow(2).mean().backward()
        fast.step()
    slow.zero_grad()
    (torch.cat(scores) * torch.cat(errors)).mean().backward()
    slow.step()
