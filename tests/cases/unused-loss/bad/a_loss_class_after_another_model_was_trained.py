import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

class Criterion(nn.Module):
    def forward(self, out, y):
        return (out - y).square().mean()

net, teacher, criterion = mlp(), mlp(), Criterion()

def fit(model, opt, backward):
    for step in range(30):
        x = torch.randn(8, 4)
        loss = criterion(model(x), x[:, :1])
        opt.zero_grad()
        if backward:
            loss.backward()
        opt.step()

fit(teacher, torch.optim.SGD(teacher.parameters(), 0.1), True)
student = mlp()

def distill(opt):
    for step in range(10):
        x = torch.randn(8, 4)
        with torch.no_grad():
            y = teacher(x)
        loss = criterion(student(x), y)  # <- unused-loss
        opt.step()
        opt.zero_grad()

distill(torch.optim.SGD(student.parameters(), 0.1))
