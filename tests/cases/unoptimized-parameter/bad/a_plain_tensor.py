import torch
from torch import nn

torch.manual_seed(0)

class Prompt(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = torch.randn(2, 4, requires_grad=True)  # <- unoptimized-parameter
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(torch.cat([self.prompt.expand(len(x), -1, -1), x], 1).mean(1))

m = Prompt()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 3, 4)).pow(2).mean().backward()
    o.step()
