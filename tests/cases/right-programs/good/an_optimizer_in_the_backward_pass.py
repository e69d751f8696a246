import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

def hook(p):
    opts[p].step()
    opts[p].zero_grad()

for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
for _ in range(3):
    model(torch.randn(8, 3)).pow(2).mean().backward()
