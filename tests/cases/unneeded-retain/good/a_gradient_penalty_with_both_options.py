import torch
from torch import nn

torch.manual_seed(0)

D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
for _ in range(3):
    x = torch.randn(8, 3, requires_grad=True)
    score = D(x)
    grad = torch.autograd.grad(
        outputs=score,
        inputs=x,
        grad_outputs=torch.ones_like(score),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    opt.zero_grad()
    ((grad.norm(2, dim=1) - 1) ** 2).mean().backward()
    opt.step()
