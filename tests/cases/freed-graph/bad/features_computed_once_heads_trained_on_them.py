import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

encoder, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
x, y = torch.randn(32, 4), torch.randn(32, 1)
features = encoder(x)  # <- freed-graph
for epoch in range(3):
    loss = F.mse_loss(head(features), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
