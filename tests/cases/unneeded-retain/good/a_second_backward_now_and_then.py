import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(8):
    out = torch.tanh(model(torch.randn(8, 3)))
    opt.zero_grad()
    out.pow(2).mean().backward(retain_graph=True)
    if step % 4 == 0:
        out.abs().mean().backward()
    opt.step()
    kept = out
