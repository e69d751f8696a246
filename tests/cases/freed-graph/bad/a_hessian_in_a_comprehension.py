import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
loss = (w.sin() * w.flip(0)).sum()
(g,) = torch.autograd.grad(loss, w, create_graph=True)
hessian = torch.stack([torch.autograd.grad(gi, w)[0] for gi in g])  # <- freed-graph
