import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
x, y = torch.randn(20, 3), torch.randn(20, 1)

def closure():
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward(retain_graph=True)  # <- unneeded-retain
    return loss

for _ in range(2):
    opt.step(closure)
