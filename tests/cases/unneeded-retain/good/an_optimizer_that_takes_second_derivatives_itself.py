import torch
from torch import nn

torch.manual_seed(0)

class Newton(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    def step(self):
        params = [p for g in self.param_groups for p in g["params"]]
        z = [torch.randn_like(p) for p in params]
        hz = torch.autograd.grad([p.grad for p in params], params, grad_outputs=z)
        with torch.no_grad():
            for p, h, v in zip(params, hz, z):
                p -= 0.01 * p.grad / ((h * v).abs() + 1.0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = Newton(model.parameters())
for _ in range(3):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward(create_graph=True)
    opt.step()
