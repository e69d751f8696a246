import torch
from torch import nn

torch.manual_seed(0)

def clear(kind, model, opt):
    params = list(model.parameters())
    if kind == 0:
        opt.zero_grad(set_to_none=False)
    elif kind == 1:
        for p in params:
            p.grad = None
    elif kind == 2:
        for p in params:
            p.grad.zero_()
    elif kind == 3:
        for p in params:
            p.grad.data.zero_()
    elif kind == 4:
        for p in params:
            p.grad.detach_()
            p.grad.zero_()
    elif kind == 5:
        for p in params:
            del p.grad
    elif kind == 6:
        torch._foreach_zero_([p.grad for p in params])
    elif kind == 7:
        for p in params:
            p.grad = torch.zeros_like(p)
    elif kind == 8:
        for p in params:
            p.grad.fill_(0)
    elif kind == 9:
        for p in params:
            p.grad *= 0
    elif kind == 10:
        for p in params:
            p.grad.data = torch.zeros_like(p)
    else:
        model.zero_grad(set_to_none=True)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for kind in [*range(12), *range(12)]:
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
    clear(kind, model, opt)
for kind in range(12):
    model(torch.randn(8, 3)).pow(2).mean().backward()
    clear(kind, model, opt)
    for _ in range(2):
        model(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
