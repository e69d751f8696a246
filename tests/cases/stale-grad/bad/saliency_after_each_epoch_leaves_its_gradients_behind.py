import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def saliency(model, x):
    x = x.clone().requires_grad_()
    model(x).max(1).values.sum().backward()  # <- stale-grad
    return x.grad.abs()

def train_epoch():
    for _ in range(3):
        x = torch.randn(8, 3)
        F.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
        opt.step()
        opt.zero_grad()

for epoch in range(2):
    train_epoch()
    saliency(model, torch.randn(4, 3))
