import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3)
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    pred = model(x).argmax(1).float()  # <- no-graph
    loss = F.mse_loss(pred, y.float())
    loss.requires_grad_()
    opt.zero_grad()
    loss.backward()
    opt.step()
