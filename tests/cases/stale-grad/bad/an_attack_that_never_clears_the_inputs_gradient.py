import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3).requires_grad_(False)

def attack(x, y, eps=0.1, steps=5):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()  # <- stale-grad
        delta.data = (delta + 0.02 * delta.grad.sign()).clamp(-eps, eps)
    return delta.detach()

attack(torch.randn(8, 4), torch.randint(0, 3, (8,)))
