import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def gram(x):
    f = x.flatten(2)
    return f @ f.transpose(1, 2) / f.numel()

class StyleLoss(nn.Module):
    def __init__(self, feature):
        super().__init__()
        self.target = gram(feature)  # <- freed-graph

    def forward(self, x):
        self.loss = F.mse_loss(gram(x), self.target)
        return x

def build(cnn, style):
    style_loss = StyleLoss(cnn(style))
    return nn.Sequential(cnn, style_loss), style_loss

cnn = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU())
image = torch.rand(1, 1, 8, 8, requires_grad=True)
model, style_loss = build(cnn, torch.rand(1, 1, 8, 8))
opt = torch.optim.Adam([image])

def step():
    opt.zero_grad()
    model(image)
    style_loss.loss.backward()
    opt.step()

for _ in range(3):
    step()
