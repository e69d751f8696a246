import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3)).requires_grad_(False)
image = torch.rand(1, 1, 12, 12)
for octave in range(2):
    image = F.interpolate(image, scale_factor=1.2).requires_grad_(True)
    for _ in range(3):
        net(image).norm().backward()
        image.data += 0.01 * image.grad.data / image.grad.data.abs().mean()
        image.grad.data.zero_()
    image = image.detach()
