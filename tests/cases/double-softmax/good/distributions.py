import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical

torch.manual_seed(0)

m = nn.Linear(4, 3)
for d in (Categorical(logits=m(torch.randn(5, 4))), Categorical(probs=m(torch.randn(5, 4)).softmax(-1)),
          Categorical(logits=m(torch.randn(5, 4)).log_softmax(-1)), Bernoulli(probs=m(torch.randn(5, 4)).sigmoid())):
    (-d.log_prob(d.sample())).mean().backward()
torch.logsumexp(m(torch.randn(5, 4)).softmax(-1), 1).mean().backward()
