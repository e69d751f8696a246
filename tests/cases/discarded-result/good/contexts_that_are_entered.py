import torch
from torch import nn

torch.manual_seed(0)

cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

@torch.no_grad()
def evaluate():
    with torch.inference_mode():
        return head(cell(torch.randn(8, 4))).mean().item()

grad_off = torch.no_grad()
for _ in range(4):
    opt.zero_grad()
    head(cell(torch.randn(8, 4))).square().mean().backward()
    opt.step()
    with grad_off:
        evaluate()
