import torch
import torch.nn.functional as F

torch.manual_seed(0)

meta = torch.randn(3, 1)
for task in range(2):
    w, x, y = meta.clone().requires_grad_(), torch.randn(8, 3), torch.randn(8, 1)
    for _ in range(3):
        loss = F.mse_loss(torch.tanh(x @ w), y)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)  # <- unneeded-retain
        w = w - 0.1 * g
    meta += 0.1 * (w.detach() - meta)
