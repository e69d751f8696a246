import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

first = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
second = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
one = torch.optim.Adam(first.parameters())
two = torch.optim.Adam(second.parameters())
for _ in range(5):
    one.zero_grad()
    two.zero_grad()
    made = second(first(torch.randn(6, 2)))
    seen = second(torch.randn(6, 3))
    a = 0.5 * (
        F.binary_cross_entropy_with_logits(made, torch.zeros_like(made))
        + F.binary_cross_entropy_with_logits(seen, torch.ones_like(seen))
    )
    b = F.binary_cross_entropy_with_logits(made, torch.ones_like(made))
    a.backward(retain_graph=True)  # <- leaked-grad
    b.backward()
    two.step()
    one.step()
