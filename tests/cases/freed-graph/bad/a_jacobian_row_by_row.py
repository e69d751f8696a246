import torch

torch.manual_seed(0)

def jacobian(f, x):
    y = f(x)
    rows = []
    for i in range(len(y)):
        rows.append(torch.autograd.grad(y[i], x)[0])  # <- freed-graph
    return torch.stack(rows)

w = torch.randn(3, 3)
jacobian(lambda x: torch.tanh(w @ x), torch.randn(3, requires_grad=True))
