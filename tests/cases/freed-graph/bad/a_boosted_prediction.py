import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

learners = [nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(2)]
x, y = torch.randn(16, 2), torch.randn(16, 1)
total = torch.zeros(16, 1)
for learner in learners:
    opt = torch.optim.SGD(learner.parameters(), lr=0.1)
    for _ in range(3):
        loss = F.mse_loss(learner(x), y - total)  # <- freed-graph
        opt.zero_grad()
        loss.backward()
        opt.step()
    total = total + 0.5 * learner(x)
