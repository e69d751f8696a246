import torch
from torch import nn

torch.manual_seed(0)

class Quantize(nn.Module):
    def forward(self, x):
        y = x * 1.0
        y.data = torch.round(y.data * 4) / 4
        return y

model = nn.Sequential(nn.Linear(3, 4), Quantize(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
