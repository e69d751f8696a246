import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
o = m(torch.randn(5, 4))
F.mse_loss(o, torch.zeros(1, 3)).backward(retain_graph=True)
F.mse_loss(o, torch.zeros(3)).backward(retain_graph=True)
((o - torch.ones(3)) ** 2).mean().backward(retain_graph=True)
((o - o.mean(0)) ** 2).mean().backward(retain_graph=True)
((o - o.mean(1, keepdim=True)) ** 2).mean().backward(retain_graph=True)
(o - 1.0).pow(2).mean().backward()
