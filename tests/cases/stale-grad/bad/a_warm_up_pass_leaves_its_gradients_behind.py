import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def probe(model):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()  # <- stale-grad
    return {name: p.grad.norm().item() for name, p in model.named_parameters()}

print(probe(model))
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
