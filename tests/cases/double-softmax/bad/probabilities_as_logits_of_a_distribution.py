import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)

m = nn.Linear(4, 3)
p = m(torch.randn(5, 4)).softmax(-1)  # <- double-softmax
d = Categorical(logits=p)
(-d.log_prob(d.sample())).mean().backward()
