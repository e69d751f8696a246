import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scale = None
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    scale = loss if scale is None else 0.9 * scale + 0.1 * loss  # <- freed-graph
    opt.zero_grad()
    (loss / scale).backward()
    opt.step()
