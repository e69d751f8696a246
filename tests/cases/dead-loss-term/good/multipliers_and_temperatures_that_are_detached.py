import torch
from torch import nn

torch.manual_seed(0)

net = nn.Linear(4, 2)
log_alpha, lam = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.ones(()))
opt = torch.optim.SGD([*net.parameters(), log_alpha, lam], 0.05)
for _ in range(8):
    x = torch.randn(16, 4)
    out = net(x)
    violation = out.mean() - 0.1
    loss = out.pow(2).mean() + log_alpha.detach().exp() * out.abs().mean()
    loss = loss + lam.detach() * violation + (-lam * violation.detach()) + log_alpha.data.sum()
    loss = loss - (log_alpha * (out.detach().abs().mean() - 0.5)).sum()
    loss = (loss - 0.01).abs() + 0.01
    opt.zero_grad()
    loss.backward()
    opt.step()
