import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(10)]

def train(opt, schedule=None, epochs=1):
    for epoch in range(epochs):
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            if schedule is not None:
                schedule.step()

master = [p.detach().clone().requires_grad_() for p in model.parameters()]
opt = torch.optim.SGD(master, lr=0.1)
for x, y in data:
    model.zero_grad()
    F.mse_loss(model(x), y).backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.clone()
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, model.parameters()):
            p.copy_(m)
