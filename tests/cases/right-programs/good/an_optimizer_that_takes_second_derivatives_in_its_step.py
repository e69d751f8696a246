import torch
from torch import nn

torch.manual_seed(0)

class Diagonal(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    def step(self):
        params = [p for group in self.param_groups for p in group["params"]]
        signs = [torch.randint_like(p, 2) * 2 - 1.0 for p in params]
        products = torch.autograd.grad([p.grad for p in params], params, signs)
        for p, product in zip(params, products):
            p.data -= 0.1 * p.grad.detach() / (product.abs() + 0.1)

model = nn.Linear(3, 1)
opt = Diagonal(model.parameters())
for _ in range(4):
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward(create_graph=True)
    opt.step()
opt.zero_grad()
