import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Sequential(
            nn.ReLU(),
            nn.Linear(8, 1),
            nn.Sigmoid(),  # <- double-softmax
        )
    def forward(self, x):
        return self.head(self.body(x))

m = N()
F.binary_cross_entropy_with_logits(m(torch.randn(5, 4)), torch.ones(5, 1)).backward()
