import torch
from torch import nn

torch.manual_seed(0)


class Gated(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.gate = nn.Sequential(nn.Linear(width, 4, bias=False), nn.ReLU(), nn.Linear(4, width, bias=False))
        for layer in self.gate:
            if isinstance(layer, nn.Linear):
                with torch.no_grad():
                    layer.weight.fill_(0.0)  # <- zero-gradient

    def forward(self, x):
        h = self.inner(x)
        return x + self.gate(h) * h


model = nn.Sequential(Gated(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    x = torch.randn(16, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
