import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

model = nn.Linear(3, 1)
loader = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), batch_size=8)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    opt.zero_grad()
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()  # <- stale-grad
        opt.step()
