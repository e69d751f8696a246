import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def evaluate():
    torch.set_grad_enabled(False)  # <- no-graph
    return model(torch.randn(8, 4)).pow(2).mean().item()

for epoch in range(2):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(evaluate())
