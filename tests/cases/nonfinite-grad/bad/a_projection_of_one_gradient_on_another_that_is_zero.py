import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

def loss_of(x):
    return model(x).pow(2).mean()

class Surgery:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.params = [p for group in optimizer.param_groups for p in group["params"]]

    def project(self, a, b):
        share = (a * b).sum() / b.pow(2).sum()  # <- nonfinite-grad
        return a - share * b

    def step(self, first, second):
        a = torch.autograd.grad(first, self.params, retain_graph=True)  # also unneeded-retain
        b = torch.autograd.grad(second, self.params)
        for p, g, h in zip(self.params, a, b):
            p.grad = self.project(g, h)
        self.optimizer.step()

surgery = Surgery(opt)
for step in range(25):
    surgery.step(loss_of(torch.randn(8, 4)), loss_of(torch.randn(8, 4)) * (step != 20))
