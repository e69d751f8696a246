import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), 1e-3)
for step in range(20):
    keep = torch.ones(5, 4, dtype=torch.bool)
    if step == 13:
        keep[0, 1] = False
    logp = net(torch.randn(5, 3)).masked_fill(~keep, float("-inf")).log_softmax(1)
    h = (logp.exp() * logp).nan_to_num(0.0)  # <- nonfinite-grad
    loss = h.sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
