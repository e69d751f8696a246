import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    pred = model(x).argmax(1)  # <- no-graph
    loss = F.mse_loss(pred.float(), y.float())
    opt.zero_grad()
    loss.backward()
    opt.step()
