import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    loss, penalty = 0, 0
    for env in range(2):
        x, y = torch.randn(8, 4), torch.rand(8, 1).round()
        scale = torch.ones(1, requires_grad=True)
        risk = F.binary_cross_entropy_with_logits(model(x) * scale, y)
        (g,) = torch.autograd.grad(risk, scale, create_graph=True)
        loss, penalty = loss + risk, penalty + g.pow(2).sum()
    opt.zero_grad()
    (loss + penalty).backward()
    opt.step()
