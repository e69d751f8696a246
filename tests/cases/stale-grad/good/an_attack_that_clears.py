import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3).requires_grad_(False)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
delta = torch.zeros_like(x, requires_grad=True)
for _ in range(4):
    F.cross_entropy(model(x + delta), y).backward()
    delta.data = (delta + 0.02 * delta.grad.detach().sign()).clamp(-0.1, 0.1)
    delta.grad.zero_()
adv = x.clone()
for _ in range(4):
    adv = adv.detach().requires_grad_()
    F.cross_entropy(model(adv), y).backward()
    adv = adv + 0.02 * adv.grad.sign()
