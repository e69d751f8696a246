import copy
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

a = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
b = copy.deepcopy(a)
optimizer = torch.optim.Adam(a.parameters())
for _ in range(6):
    x = torch.randn(6, 3)
    mine, theirs = a(x).log_softmax(1), b(x).log_softmax(1)
    margin = (mine[:, 0] - theirs[:, 0]) - (mine[:, 1] - theirs[:, 1])
    loss = -F.logsigmoid(margin).mean()
    optimizer.zero_grad()
    loss.backward()  # also note: leaked-grad
    optimizer.step()
