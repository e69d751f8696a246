import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.heads = nn.Linear(4, 8), nn.ModuleDict({"x": nn.Linear(8, 1), "y": nn.Linear(8, 1)})

    def forward(self, x, targets):
        f = torch.tanh(self.trunk(x))
        return {name: F.mse_loss(head(f), targets[name]) for name, head in self.heads.items()}

model = Model()
opt = torch.optim.Adam(model.parameters())
losses = model(torch.randn(8, 4), {"x": torch.randn(8, 1), "y": torch.randn(8, 1)})
opt.zero_grad()
for name, loss in losses.items():
    loss.backward()  # <- freed-graph
opt.step()
