import torch

torch.manual_seed(0)

def jacobian(f, x):
    y = f(x)
    return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))])

w = torch.randn(3, 3)
for _ in range(3):
    J = jacobian(lambda x: torch.tanh(w @ x), torch.randn(3, requires_grad=True))
