import torch

torch.manual_seed(0)

cube = lambda v: (v**3).sum()
x = torch.randn(4, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(cube, (x,)), torch.autograd.gradgradcheck(cube, (x,)))
out = cube(x)
values = x.data
for i in range(4):
    kept = values[i].item()
    values[i] = kept + 1e-3
    above = cube(x.detach())
    values[i] = kept
out.backward()
