import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.LBFGS(model.parameters(), max_iter=5)
x = torch.randn(20, 3)
loss = model(x).pow(2).mean()  # <- freed-graph

def closure():
    opt.zero_grad()
    loss.backward()
    return loss

opt.step(closure)
