import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

def pgd(x, y, steps=3):
    adv = x.clone()
    for _ in range(steps):
        adv.requires_grad_(True)
        loss = F.cross_entropy(model(adv), y)
        grad = torch.autograd.grad(loss, adv, retain_graph=True, create_graph=False)[0]  # <- unneeded-retain
        adv = (adv + 0.01 * grad.sign()).detach()
    return adv

for _ in range(2):
    pgd(torch.randn(8, 4), torch.randint(0, 3, (8,)))
