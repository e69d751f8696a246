import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()

def jitter(x):
    gain = nn.Parameter(torch.ones(x.shape[1]))  # <- unoptimized-parameter
    return x * gain

net = mlp(4, 1)
x = torch.randn(16, 4)
fit(net, torch.optim.Adam(net.parameters()), lambda step: F.mse_loss(net(jitter(x)), x[:, :1]))
