import torch
import torch.nn.functional as F

torch.manual_seed(0)

w0 = torch.randn(3, 1, requires_grad=True)
opt = torch.optim.SGD([w0], lr=0.1)

def adapt(w, x, y):
    for _ in range(2):
        (g,) = torch.autograd.grad(F.mse_loss(torch.tanh(x @ w), y), w, create_graph=True)
        w = w - 0.1 * g
    return w

def task():
    return torch.randn(8, 3), torch.randn(8, 1)

for _ in range(3):
    x, y = task()
    w = adapt(w0, x, y)
    opt.zero_grad()
    F.mse_loss(torch.tanh(x @ w), y).backward()
    opt.step()
    test_losses = []
    for _ in range(3):
        x, y = task()
        w = adapt(w0, x, y)
        test_losses.append(F.mse_loss(torch.tanh(x @ w), y))  # also note: unused-loss
