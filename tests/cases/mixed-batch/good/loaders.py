import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

e, r, o = nn.Embedding(9, 4), nn.GRU(4, 8), nn.Linear(8, 9)
b = nn.GRU(4, 8, batch_first=True)
for (t,) in DataLoader(TensorDataset(torch.randint(0, 9, (20, 7))), batch_size=5, shuffle=True):
    o(r(e(t.t()))[0]).mean().backward()
    o(r(e(t).transpose(0, 1))[0]).mean().backward()
    o(b(e(t))[0]).mean().backward()
for (x,) in DataLoader(TensorDataset(torch.randn(20, 3, 4)), batch_size=5):
    o(r(x)[0]).mean().backward()
