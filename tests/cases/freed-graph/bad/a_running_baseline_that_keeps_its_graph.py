import torch
from torch import nn

torch.manual_seed(0)

policy, value = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()])
baseline = torch.zeros(())
for _ in range(3):
    s = torch.randn(10, 3)
    logp = torch.log_softmax(policy(s), 1)[:, 0]
    ret = value(s).squeeze(1) + torch.randn(10)
    loss = -(logp * (ret - baseline)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.9 * baseline + 0.1 * ret.mean()  # <- freed-graph
