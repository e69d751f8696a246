from functools import cached_property

import torch
from torch import nn

torch.manual_seed(0)

class Rotation(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(3, 3))

    @cached_property
    def basis(self):
        return torch.matrix_exp(self.raw - self.raw.t())  # <- freed-graph

    def forward(self, x):
        return x @ self.basis

model = Rotation()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(4, 3)).pow(2)[:, 0].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
