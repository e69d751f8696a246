import torch

torch.manual_seed(0)

def hessian(f, x):
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.stack([torch.autograd.grad(gi, x, retain_graph=True)[0] for gi in g])

for _ in range(2):
    hessian(lambda x: (x.sin() * x.flip(0)).sum(), torch.randn(3, requires_grad=True))
