import torch
from torch import nn

torch.manual_seed(0)
w1, w2 = (torch.randn(*shape, requires_grad=True) for shape in ((3, 5), (5, 1)))
x = torch.randn(32, 3)
for _ in range(4):
    hidden = (x @ w1).tanh().detach().requires_grad_()  # <- unreached-parameter
    loss = nn.functional.mse_loss(hidden @ w2, x.sum(1, keepdim=True))
    loss.backward()
    for w in (w1, w2):
        w.data -= 0.1 * w.grad
        w.grad = None
