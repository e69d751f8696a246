import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

net = mlp()
opt = torch.optim.Adam(net.parameters())

def predict(x):
    return net(x).detach()  # <- no-graph

def objective(x):
    return Variable(F.mse_loss(predict(x), x[:, :1]), requires_grad=True)

def fit(x):
    loss = objective(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()

for _ in range(6):
    fit(torch.randn(8, 4))
