import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

a = nn.MultiheadAttention(8, 2); fc = nn.Linear(8, 3); x = torch.randn(6, 5, 8)
o, _ = a(x, x, x)  # <- mixed-batch
F.cross_entropy(fc(F.relu(x + o).mean(1)), torch.randint(0, 3, (6,))).backward()
