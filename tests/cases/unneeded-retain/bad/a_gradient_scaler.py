import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    opt.zero_grad()
    scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward(retain_graph=True)  # <- unneeded-retain
    scaler.step(opt)
    scaler.update()
