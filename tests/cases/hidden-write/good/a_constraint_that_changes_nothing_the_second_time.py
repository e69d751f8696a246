import torch
from torch import nn

torch.manual_seed(0)

class Renormed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.other = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.5)
        self.other.data.div_(self.other.data.norm(dim=1, keepdim=True))
        return (self.weight * self.other * x.unsqueeze(1)).sum(-1)

model = Renormed()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (model(torch.randn(3, 4)) - model(torch.randn(3, 4))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
