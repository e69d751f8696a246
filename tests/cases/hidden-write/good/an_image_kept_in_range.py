import torch
from torch import nn

torch.manual_seed(0)

net = nn.Conv2d(1, 2, 3).requires_grad_(False)
image = torch.rand(1, 1, 6, 6, requires_grad=True)
optimizer = torch.optim.LBFGS([image], max_iter=4)

def closure():
    image.data.clamp_(0, 1)
    optimizer.zero_grad()
    loss = (net(image) - 0.5).pow(2).mean()
    loss.backward()
    return loss

for _ in range(3):
    optimizer.step(closure)
