import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(3, 8, 3):
    opt.zero_grad(set_to_none=True)
    for micro in batch.split(2):
        (model(micro).pow(2).mean() / 4).backward()
    opt.step()
