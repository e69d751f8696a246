import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(9, 4), nn.LSTM(4, 8), nn.Linear(8, 9)
    def forward(self, t):
        h, _ = self.r(F.dropout(self.e(t), 0.1))  # <- mixed-batch
        return self.o(h)

m = LM()
for (t,) in DataLoader(TensorDataset(torch.randint(0, 9, (20, 7))), batch_size=5, shuffle=True):
    F.cross_entropy(m(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()).backward()
