import torch
import torch.nn.functional as F

torch.manual_seed(0)

w, alpha = torch.randn(3, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
opt_w, opt_a = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([alpha])

def loss_of(w, x, y):
    return F.mse_loss(torch.tanh(x @ w) @ alpha.softmax(0), y)

for _ in range(3):
    xt, yt, xv, yv = torch.randn(8, 3), torch.randn(8), torch.randn(8, 3), torch.randn(8)
    (g,) = torch.autograd.grad(loss_of(w, xt, yt), w, create_graph=True)
    opt_a.zero_grad()
    loss_of(w - 0.1 * g, xv, yv).backward()
    opt_a.step()
    opt_w.zero_grad()
    loss_of(w, xt, yt).backward()
    opt_w.step()
