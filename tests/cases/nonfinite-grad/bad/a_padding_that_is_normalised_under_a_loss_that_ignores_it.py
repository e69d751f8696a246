import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(5, 3, padding_idx=0), nn.Linear(3, 3)
h = table(torch.tensor([0, 1, 2, 3]))
unit = h / torch.linalg.norm(h, dim=1, keepdim=True)  # <- nonfinite-grad
F.cross_entropy(head(unit), torch.tensor([-100, 0, 1, 2]), ignore_index=-100).backward()
