import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(4):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
    for p in model.parameters():
        p.grad.div_(scaler.get_scale())
    optimizer.step()
