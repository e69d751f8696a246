import torch
from torch import nn

torch.manual_seed(0)

def make_learner():
    cell = nn.RNNCell(3, 5)
    opt = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(1, 5)

    def learn(x):
        nonlocal h
        h = cell(x, h)  # <- freed-graph
        opt.zero_grad()
        h.abs().mean().backward()
        opt.step()

    return learn

learn = make_learner()
for _ in range(3):
    learn(torch.randn(1, 3))
