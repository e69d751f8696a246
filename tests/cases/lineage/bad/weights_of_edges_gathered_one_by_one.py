import torch
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()

class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.edge, self.node = mlp(2, 1), nn.Linear(3, 1)

    def weights(self, edges):
        found = []
        for e in edges:
            found.append(torch.sigmoid(self.edge(e)).item())  # <- unreached-parameter
        return torch.tensor(found)

    def forward(self, x, edges):
        return self.node(x * self.weights(edges).unsqueeze(1))

model = Graph()
x, edges = torch.randn(6, 3), torch.randn(6, 2)
fit(model, torch.optim.Adam(model.parameters()), lambda step: model(x, edges).pow(2).mean())
