import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 3, 3), nn.Linear(3, 2)
    def forward(self, x):
        self.kept = F.relu(self.conv(x))
        return self.fc(self.kept.mean(dim=(2, 3)))

net = Net()
net(torch.randn(1, 1, 6, 6))[0, 1].backward()
weights = net.kept.grad  # <- non-leaf-grad
