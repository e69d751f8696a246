import torch
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))

emb, net = nn.Embedding(10,4), mlp()
e = emb(torch.arange(5))
net(e).sum().backward()
sal = e.grad.abs().sum(-1) if e.grad is not None else None  # <- non-leaf-grad
