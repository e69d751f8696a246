import torch
from torch import nn

torch.manual_seed(0)

policy = nn.Linear(4, 2)
opt = torch.optim.Adam(policy.parameters())
s, a, adv = torch.randn(10, 4), torch.randint(0, 2, (10, 1)), torch.randn(10, 1)
with torch.no_grad():
    old = torch.log_softmax(policy(s), 1).gather(1, a)
for _ in range(3):
    ratio = (torch.log_softmax(policy(s), 1).gather(1, a) - old).exp()
    opt.zero_grad()
    (-torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()).backward()
    opt.step()
