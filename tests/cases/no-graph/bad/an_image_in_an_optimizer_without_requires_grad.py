import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Conv2d(1, 2, 3).requires_grad_(False)
content = torch.rand(1, 1, 8, 8)
image = content.clone()  # <- no-graph
opt = torch.optim.Adam([image], lr=0.1)
for _ in range(2):
    loss = F.mse_loss(net(image), net(content) + 1)
    opt.zero_grad()
    loss.backward()
    opt.step()
