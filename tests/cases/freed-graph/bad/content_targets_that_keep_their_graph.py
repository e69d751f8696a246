import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x

def build(cnn, content):
    target = cnn(content)  # <- freed-graph
    content_loss = ContentLoss(target)
    return nn.Sequential(cnn, content_loss), content_loss

cnn = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU())
image = torch.rand(1, 1, 8, 8, requires_grad=True)
model, content_loss = build(cnn, torch.rand(1, 1, 8, 8))
opt = torch.optim.Adam([image])
for _ in range(3):
    opt.zero_grad()
    model(image)
    content_loss.loss.backward()
    opt.step()
