import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model, dec = nn.Linear(4, 3), nn.Linear(3, 4)
opt = torch.optim.SGD([*model.parameters(), *dec.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    soft = model(x).softmax(1)
    hard = F.one_hot(soft.argmax(1), 3).float()
    opt.zero_grad()
    F.mse_loss(dec(hard + soft - soft.detach()), x).backward()
    opt.step()
