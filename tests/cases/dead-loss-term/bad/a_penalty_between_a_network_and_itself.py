import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
pretrained = net
opt = torch.optim.AdamW(net.parameters(), 1e-2, weight_decay=0.0)
for _ in range(8):
    x = torch.randn(16, 4)
    loss = F.mse_loss(net(x), x[:, :1])
    for new, old in zip(net.parameters(), pretrained.parameters()):
        loss = loss + 0.01 * F.mse_loss(new, old)  # <- dead-loss-term
    opt.zero_grad()
    loss.backward()
    opt.step()
