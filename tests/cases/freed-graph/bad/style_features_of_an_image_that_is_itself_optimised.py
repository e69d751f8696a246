import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU()).requires_grad_(False)
image = torch.rand(1, 1, 8, 8, requires_grad=True)
opt = torch.optim.Adam([image])
content = net(image)  # <- freed-graph
for _ in range(3):
    loss = F.mse_loss(net(image + 0.1), content)
    opt.zero_grad()
    loss.backward()
    opt.step()
