import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)

data = [(torch.randn(6, 4), torch.randn(6, 1)) for _ in range(12)]
i, r, o = nn.Linear(4, 4), nn.GRU(4, 8), nn.Linear(8, 1)
for x, y in DataLoader(data, batch_size=4, shuffle=True):
    h, _ = r(i(x))  # <- mixed-batch
    F.mse_loss(o(h), y).backward()
