import torch
from torch import nn

torch.manual_seed(0)

policy = nn.Linear(4, 2)
dist = torch.distributions.Categorical(logits=policy(torch.randn(8, 4)))
action = dist.sample()  # <- no-graph
loss = -(action.float() * torch.randn(8)).mean()
loss.backward()
