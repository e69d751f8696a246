import torch
from torch.autograd.functional import hessian, hvp, jacobian

torch.manual_seed(0)

for _ in range(2):
    x = torch.randn(3)
    hessian(lambda x: x.sin().prod(), x)
    jacobian(lambda x: x.sin().sum(), x)
    hvp(lambda x: x.sin().prod(), x, torch.ones(3))
