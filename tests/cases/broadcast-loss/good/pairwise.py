import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 1)
s = m(torch.randn(6, 4)).squeeze(1)
y = torch.randn(6)
loss = F.relu(1 - (s[:, None] - s[None, :]) * (y[:, None] - y[None]).sign()).mean()
loss.backward(retain_graph=True)
(s.unsqueeze(1) - s).abs().mean().backward(retain_graph=True)
(s.unsqueeze(1) - y).abs().mean().backward(retain_graph=True)
(y.view(-1, 1) - s).abs().mean().backward(retain_graph=True)
c = torch.randn(6, 1)
d = (s - c).pow(2)
d.min(1).values.mean().backward()
