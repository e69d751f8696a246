import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

class State:
    def __init__(self):
        self.parts = [torch.zeros(8, 4) for _ in range(2)]
    def detach(self):
        for part in self.parts:
            part.detach()  # <- discarded-result

state = State()
for _ in range(4):
    state.detach()
    state.parts = [cell(torch.randn(8, 4), part) for part in state.parts]
    opt.zero_grad()
    head(sum(state.parts)).square().mean().backward(retain_graph=True)  # also cleared-grad
