import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = list(model.parameters())
opt = torch.optim.SGD(params, lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, params, create_graph=True)])

    def product(v):
        return torch.cat([h.flatten() for h in torch.autograd.grad(flat @ v, params, retain_graph=True)])  # also note: unneeded-retain

    v = flat.detach()
    for _ in range(3):
        v = v - 0.1 * product(v)
    opt.zero_grad()
    for p, part in zip(params, v.split([p.numel() for p in params])):
        p.grad = part.view_as(p)
    opt.step()
