import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh()).requires_grad_(False)
image = torch.rand(1, 1, 8, 8, requires_grad=True)
for _ in range(4):
    score = net(image)[0, 1].mean()
    score.backward()  # <- stale-grad
    with torch.no_grad():
        image += 0.1 * image.grad / (image.grad.norm() + 1e-8)
