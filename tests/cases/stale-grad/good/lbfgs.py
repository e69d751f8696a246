import torch
import torch.nn.functional as F

torch.manual_seed(0)

coef = torch.zeros(3, requires_grad=True)
opt = torch.optim.LBFGS([coef], max_iter=4, line_search_fn="strong_wolfe")
x, y = torch.randn(20, 3), torch.randn(20)

def closure():
    opt.zero_grad()
    loss = F.mse_loss(x @ coef, y)
    loss.backward()
    return loss

for _ in range(3):
    opt.step(closure)
