import torch
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


policy = mlp(4, 2)
opt, baseline = torch.optim.Adam(policy.parameters()), 0.0
for episode in range(8):
    logs, rewards = [], []
    for t in range(5):
        dist = torch.distributions.Categorical(logits=policy(torch.randn(4)))
        a = dist.sample()
        logs.append(dist.log_prob(a))
        rewards.append(float(a.item()))
    ret = sum(rewards)
    loss = -torch.stack(logs).sum() * (ret - baseline)
    baseline = 0.9 * baseline + 0.1 * ret
    opt.zero_grad()
    loss.backward()
    opt.step()
