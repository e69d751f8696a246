import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

class M(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.encoder, self.head = mlp(4, 8), nn.Linear(8, 2)
        self.encoder.load_state_dict(state)
    def forward(self, x):
        with torch.no_grad():  # also note: unreached-parameter
            h = self.encoder(x)
        return self.head(h)

m = M(mlp(4, 8).state_dict())
o = torch.optim.Adam(m.parameters(), 0.01)
for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
