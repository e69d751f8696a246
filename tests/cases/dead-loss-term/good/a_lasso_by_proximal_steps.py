import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.randn(6))
opt = torch.optim.SGD([w], 0.05)
for _ in range(8):
    x = torch.randn(16, 6)
    objective = F.mse_loss(x @ w, x[:, 0]) + 0.01 * w.detach().abs().sum()
    opt.zero_grad()
    objective.backward()
    opt.step()
    w.data.copy_(torch.sign(w.data) * torch.clamp(w.data.abs() - 0.05 * 0.01, min=0))
print(objective.item())
