import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 2)
adv = torch.randn(6, 1)
lp = torch.distributions.Categorical(logits=m(torch.randn(6, 4))).log_prob(torch.zeros(6))
loss = -(lp * adv).mean()  # <- broadcast-loss
loss.backward()
