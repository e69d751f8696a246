import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


gate, net = nn.Linear(4, 4), mlp(4, 1)
opt = torch.optim.Adam([*gate.parameters(), *net.parameters()])
for _ in range(8):
    x = torch.randn(16, 4)
    soft = torch.sigmoid(gate(x))
    hard = (soft > 0.5).float()
    mask = hard + soft - soft.detach()
    loss = F.mse_loss(net(x * mask), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
