import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

first = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
second = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
one = torch.optim.Adam(first.parameters())
two = torch.optim.Adam(second.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(5):
    one.zero_grad()
    two.zero_grad()
    made = first(torch.randn(6, 2))
    seen = torch.randn(6, 3)
    (bce(second(seen), torch.ones(6, 1)) + bce(second(made.detach()), torch.zeros(6, 1))).backward()
    bce(second(made), torch.ones(6, 1)).backward()  # <- leaked-grad
    one.step()
    two.step()
