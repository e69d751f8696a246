import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)

model = nn.Linear(3, 1)
params = dict(model.named_parameters())
loss = lambda p, x: functional_call(model, p, (x,)).pow(2).mean()
each = vmap(grad(loss), in_dims=(None, 0))({k: v.detach() for k, v in params.items()}, torch.randn(5, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    loss(params, torch.randn(5, 3)).backward()
    opt.step()
