import torch
from torch import nn
from torch.func import grad, vmap
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

per_sample = vmap(grad(lambda w, x: (w * x).sum() ** 2), (None, 0))(torch.randn(4), torch.randn(3, 4))
per_sample.mul_(2)
vmap(lambda x: x.add_(1))(torch.randn(3, 2))
block = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
queue = torch.randn(4, 8)
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for turn in range(3):
    y = checkpoint(block, torch.randn(2, 4), use_reentrant=False)
    loss = (y @ queue.clone()).mean()
    queue[:, turn] = y.detach().mean(0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
