import torch
import torch.nn.functional as F

torch.manual_seed(0)

w0 = torch.randn(3, 1, requires_grad=True)
opt = torch.optim.SGD([w0], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    for task in range(2):
        x, y = torch.randn(8, 3), torch.randn(8, 1)
        w = w0
        for _ in range(2):
            (g,) = torch.autograd.grad(F.mse_loss(x @ w, y), w, create_graph=True)
            w = w - 0.1 * g
        F.mse_loss(x @ w, y).backward()
    opt.step()
