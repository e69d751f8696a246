import torch
from torch.func import grad, hessian, jacrev, vmap

torch.manual_seed(0)

f = lambda x: x.sin().prod()
for _ in range(2):
    grad(f)(torch.randn(3))
    vmap(grad(f))(torch.randn(4, 3))
    jacrev(f)(torch.randn(3))
    hessian(f)(torch.randn(3))
