import torch
from torch import nn

torch.manual_seed(0)

def iou(pred, target):
    hard = (pred > 0.5).float()  # <- no-graph
    inter = (hard * target).sum()
    return 1 - inter / (hard + target).clamp(max=1).sum()

class Loss(nn.Module):
    def forward(self, logits, target):
        return iou(torch.sigmoid(logits), target)

net, criterion = nn.Conv2d(1, 1, 3, padding=1), Loss()
loss = criterion(net(torch.rand(2, 1, 8, 8)), torch.rand(2, 1, 8, 8).round())
loss.backward()
