import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)

m = nn.Linear(4, 3); x = torch.randn(6, 4)
d = Categorical(torch.softmax(m(x), dim=1))
(-d.log_prob(d.sample())).mean().backward()
one = Categorical(torch.softmax(m(x[0]), dim=0))
(-one.log_prob(one.sample())).mean().backward()
