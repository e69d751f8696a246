import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x = torch.randn(8, 4, requires_grad=True)
    out = model(x)
    opt.zero_grad()
    out.pow(2).mean().backward(retain_graph=True)  # also note: unneeded-retain
    if step % 16 == 15:
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        slope.pow(2).sum().backward()
    opt.step()
