import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.out = nn.Linear(6, 2)
        self.state = torch.zeros(1, 6)

    def forward(self, x):
        self.state = self.cell(x, self.state.detach())
        return self.out(self.state)


def update(parameters, rate):
    for one in parameters:
        one.data.sub_(rate * one.grad)
        one.grad = None


tagger = Tagger()
for _ in range(20):
    loss = nn.functional.cross_entropy(tagger(torch.randn(1, 4)), torch.randint(0, 2, (1,)))
    loss.backward()
    update(tagger.parameters(), 0.05)
