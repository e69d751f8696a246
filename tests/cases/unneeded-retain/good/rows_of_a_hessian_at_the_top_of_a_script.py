import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
loss = (w.sin() * w.flip(0)).sum()
(g,) = torch.autograd.grad(loss, w, create_graph=True)
rows = []
for i in range(3):
    rows.append(torch.autograd.grad(g[i], w, retain_graph=True)[0])
