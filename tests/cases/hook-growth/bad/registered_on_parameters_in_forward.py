import torch
from torch import nn

torch.manual_seed(0)


class Damped(nn.Module):
    def __init__(self, scale=0.5):
        super().__init__()
        self.body, self.head, self.scale = nn.Linear(6, 8), nn.Linear(8, 2), scale

    def damp(self):
        for parameter in self.body.parameters():
            parameter.register_hook(lambda grad: grad * self.scale)  # <- hook-growth

    def forward(self, x):
        self.damp()
        return self.head(torch.tanh(self.body(x)))


model = Damped()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
