import torch
import torch.nn.functional as F

torch.manual_seed(0)

coef = torch.zeros(3, requires_grad=True)
opt = torch.optim.LBFGS([coef], max_iter=4)
x, y = torch.randn(20, 3), torch.randn(20)

def closure():
    loss = F.mse_loss(x @ coef, y)
    loss.backward()  # <- stale-grad
    return loss

for _ in range(2):
    opt.zero_grad()
    opt.step(closure)
