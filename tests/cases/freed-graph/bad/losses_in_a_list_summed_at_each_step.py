import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(3):
    losses.append(F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)))
    loss = torch.stack(losses).mean()  # <- freed-graph
    opt.zero_grad()
    loss.backward()
    opt.step()
