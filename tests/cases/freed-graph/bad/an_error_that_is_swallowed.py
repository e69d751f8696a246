import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(3, 6), nn.Linear(6, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

def step(x, state):
    state = cell(x, state)
    loss = head(state).pow(2).mean()
    opt.zero_grad()
    try:
        loss.backward()
        opt.step()
    except RuntimeError:
        pass
    return state

state = torch.zeros(4, 6)
for _ in range(5):
    state = step(torch.randn(4, 3), state)  # <- freed-graph
