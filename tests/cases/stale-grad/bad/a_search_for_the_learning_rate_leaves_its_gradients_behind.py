import copy

import torch
from torch import nn

torch.manual_seed(0)

def find_lr(model, opt):
    state = copy.deepcopy(model.state_dict())
    for lr in (1e-3, 1e-2, 1e-1):
        for group in opt.param_groups:
            group["lr"] = lr
        opt.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
        opt.step()
    model.load_state_dict(state)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
find_lr(model, opt)
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
