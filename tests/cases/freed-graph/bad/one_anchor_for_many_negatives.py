import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train(a, positives, negatives):
    anchor = net(a)  # <- freed-graph
    opt.zero_grad()
    for p, n in zip(positives, negatives):
        loss = F.triplet_margin_loss(anchor, net(p), net(n), margin=5.0)
        loss.backward()
    opt.step()

train(torch.randn(2, 3), torch.randn(3, 2, 3), torch.randn(3, 2, 3))
