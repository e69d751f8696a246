import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class T(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 1), nn.Linear(8, 3)
    def forward(self, x):
        x = self.encoder(x)  # <- mixed-batch
        return self.fc(x[:, 0])

F.cross_entropy(T()(torch.randn(6, 5, 8)), torch.randint(0, 3, (6,))).backward()
