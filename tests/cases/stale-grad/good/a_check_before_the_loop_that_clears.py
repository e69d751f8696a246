import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(8, 3)).sum().backward()
print([p.grad.norm().item() for p in model.parameters()])
for p in model.parameters():
    p.grad.data.zero_()
for _ in range(3):
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
    opt.zero_grad()
