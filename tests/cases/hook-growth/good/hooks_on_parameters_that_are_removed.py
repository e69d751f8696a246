import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.bias.register_hook(lambda grad: grad.clamp(-1, 1))
for _ in range(10):
    handles = [one.register_hook(lambda grad: grad * 0.5) for one in model.parameters()]
    handles += [model.weight.register_post_accumulate_grad_hook(lambda leaf: None)]
    inputs = torch.randn(8, 6, requires_grad=True)
    inputs.register_hook(lambda grad: None)
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for handle in handles:
        handle.remove()
