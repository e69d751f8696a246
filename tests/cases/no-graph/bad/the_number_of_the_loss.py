import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def train(x, y):
    opt.zero_grad()
    loss = F.mse_loss(model(x), y).item()  # <- no-graph
    loss.backward()
    opt.step()

train(torch.randn(8, 4), torch.randn(8, 1))
