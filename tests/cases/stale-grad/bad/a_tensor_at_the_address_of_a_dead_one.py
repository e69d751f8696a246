import torch

torch.manual_seed(0)

def probe():
    alphas = [torch.ones(3, requires_grad=True) for _ in range(100)]
    for alpha in alphas:
        alpha.sum().backward()
    return {id(alpha) for alpha in alphas}

def at_the_same_address(addresses):
    tensors = [torch.ones(3, requires_grad=True) for _ in range(200)]
    return next(one for one in tensors if id(one) in addresses)

beta = at_the_same_address(probe())
opt = torch.optim.SGD([beta], lr=0.1)
for _ in range(3):
    beta.pow(2).sum().backward()  # <- stale-grad
    opt.step()
