import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
out = model(x).detach()  # <- no-graph
loss = F.mse_loss(out, y)
loss.backward()
