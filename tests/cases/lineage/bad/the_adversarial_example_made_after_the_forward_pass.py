import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


def fgsm(model, x, y, eps=0.1):
    loss = F.cross_entropy(model(x), y)
    x_adv = x.clone()  # <- unused-input
    (g,) = torch.autograd.grad(loss, [x_adv])
    return x_adv + eps * g.sign()

net = mlp(4, 3)
fgsm(net, torch.randn(8, 4, requires_grad=True), torch.randint(3, (8,)))
