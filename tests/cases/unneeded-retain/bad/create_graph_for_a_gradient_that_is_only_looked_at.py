import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 3, requires_grad=True)
    loss = torch.tanh(model(x)).mean()
    (g,) = torch.autograd.grad(loss, x, create_graph=True)  # <- unneeded-retain
    print(g.norm().item())
