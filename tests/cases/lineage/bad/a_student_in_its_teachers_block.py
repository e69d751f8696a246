import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


teacher, student = mlp(4, 3), mlp(4, 3)
x = torch.randn(16, 4)

def distill():
    with torch.no_grad():  # <- no-graph
        t = teacher(x).softmax(1)
        s = student(x).log_softmax(1)
    return F.kl_div(s, t, reduction="batchmean")

loss = distill()
loss.backward()
