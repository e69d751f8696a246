import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
scaler = torch.amp.GradScaler("cpu")
def fit(x):
    opt.zero_grad()
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.step(opt)  # <- scaler-order
for _ in range(3):
    fit(torch.randn(8, 4))
