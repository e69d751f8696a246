import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

policy, baseline = nn.Linear(4, 2), nn.Linear(4, 1)
opt_p = torch.optim.Adam(policy.parameters())
opt_b = torch.optim.Adam(baseline.parameters())
for episode in range(4):
    log_probs, values, rewards = [], [], []
    for t in range(6):
        s = torch.randn(4)
        dist = torch.distributions.Categorical(logits=policy(s))
        a = dist.sample()
        log_probs.append(dist.log_prob(a))
        values.append(baseline(s).squeeze())
        rewards.append(float(a.item() == int(s.sum() > 0)))
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    values = torch.stack(values)
    policy_loss = -(torch.stack(log_probs) * (returns - values.detach())).sum()
    value_loss = F.mse_loss(values, returns)
    for opt, loss in ((opt_p, policy_loss), (opt_b, value_loss)):
        opt.zero_grad()
        loss.backward()
        opt.step()
