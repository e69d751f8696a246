import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 6)
        self.head = nn.Linear(6, 1)
        self.hidden = None

    def forward(self, x):
        if self.hidden is None:
            self.hidden = torch.zeros(len(x), 6)
        hidden = self.cell(x, self.hidden)
        out = self.head(hidden)
        self.hidden = hidden  # <- freed-graph
        return out

model = Tracker()
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    x = torch.randn(2, 3)
    loss = F.mse_loss(model(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
