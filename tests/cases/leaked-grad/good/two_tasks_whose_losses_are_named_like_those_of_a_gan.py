import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

body = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
head = nn.Linear(8, 1)
one = torch.optim.Adam(body.parameters())
two = torch.optim.Adam(head.parameters())
for _ in range(5):
    x, y = torch.randn(6, 3), torch.rand(6, 1)
    one.zero_grad()
    two.zero_grad()
    out = head(body(x))
    d_loss = F.binary_cross_entropy_with_logits(out, y) + 0.01 * head(torch.randn(6, 8)).square().mean()  # distance
    g_loss = F.smooth_l1_loss(out, y)  # gap
    d_loss.backward(retain_graph=True)
    g_loss.backward()
    one.step()
    two.step()
