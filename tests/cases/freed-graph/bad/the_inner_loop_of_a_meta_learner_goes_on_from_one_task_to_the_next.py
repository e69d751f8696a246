import torch
import torch.nn.functional as F

torch.manual_seed(0)

def adapt(w, x, y, steps=2):
    for _ in range(steps):
        loss = F.mse_loss(x @ w, y)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        w = w - 0.1 * g
    return w

w0 = torch.randn(3, 1, requires_grad=True)
opt = torch.optim.SGD([w0], lr=0.1)
w = w0
for task in range(3):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    w = adapt(w, x, y)  # <- freed-graph
    loss = F.mse_loss(x @ w, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
