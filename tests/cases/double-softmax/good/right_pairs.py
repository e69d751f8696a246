import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.randint(0, 3, (5,))
F.cross_entropy(m(x), y).backward()
F.nll_loss(m(x).log_softmax(1), y).backward()
F.nll_loss(m(x).softmax(1).clamp(min=1e-8).log(), y).backward()
F.binary_cross_entropy(m(x).sigmoid(), torch.rand(5, 3)).backward()
F.binary_cross_entropy(m(x).softmax(1), torch.rand(5, 3)).backward()
F.binary_cross_entropy_with_logits(m(x), torch.rand(5, 3)).backward()
