import torch
from torch import nn

torch.manual_seed(0)

model, memory = nn.Linear(3, 4), torch.zeros(4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    z = model(torch.randn(8, 3))
    loss = (z - memory).pow(2).mean()
    memory = (0.9 * memory + 0.1 * z.mean(0)).detach()
    opt.zero_grad()
    torch.autograd.backward(loss, retain_graph=True)  # <- unneeded-retain
    opt.step()
