import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = list(model.parameters())

def top_eigenvalue(steps=3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    grads = torch.autograd.grad(loss, params, create_graph=True)
    v = [torch.randn_like(p) for p in params]
    for _ in range(steps):
        hv = torch.autograd.grad(grads, params, grad_outputs=v, retain_graph=True)
        norm = sum(h.pow(2).sum() for h in hv).sqrt()
        v = [h / norm for h in hv]
    return norm

for _ in range(3):
    top_eigenvalue()
