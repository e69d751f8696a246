import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def pgd(x, y, eps=0.1, steps=3):
    delta = torch.empty_like(x).uniform_(-eps, eps).requires_grad_()
    for _ in range(steps):
        (g,) = torch.autograd.grad(F.cross_entropy(model(x + delta), y), delta)
        delta.data = (delta.data + 0.05 * g.sign()).clamp(-eps, eps)
    return (x + delta).detach()

def free(x, y, replays=2):
    noise = torch.zeros_like(x)
    for _ in range(replays):
        noise.requires_grad_()
        loss = F.cross_entropy(model(x + noise), y)
        opt.zero_grad()
        loss.backward()
        noise = (noise + 0.05 * noise.grad.sign()).clamp(-0.1, 0.1).detach()
        opt.step()

for _ in range(3):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    adv = pgd(x, y)
    opt.zero_grad()
    F.cross_entropy(model(adv), y).backward()
    opt.step()
    free(x, y)
