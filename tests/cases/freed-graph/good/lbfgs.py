import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")
x, y = torch.randn(20, 3), torch.randn(20, 1)

def closure():
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss

for _ in range(3):
    opt.step(closure)
