import torch
from torch import nn

torch.manual_seed(0)

m = nn.Linear(3, 4)
s = m(torch.randn(5, 3)); mask = torch.rand(5, 4) > 0.3; mask[:, 0] = True
d = torch.distributions.Categorical(logits=s.masked_fill(~mask, -1e8))
(d.entropy().mean() + d.log_prob(d.sample()).mean()).backward()
