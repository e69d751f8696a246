import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.target_embedding = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, wanted):
        with torch.no_grad():  # <- unreached-parameter
            query = self.target_embedding(wanted)
        return self.head(self.body(x) * query)

model = Detector()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    optimizer.zero_grad()
    F.mse_loss(model(torch.randn(6, 4), torch.randn(6, 4)), torch.randn(6, 1)).backward()
    optimizer.step()
