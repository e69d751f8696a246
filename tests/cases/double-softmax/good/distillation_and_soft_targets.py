import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m, t = nn.Linear(4, 3), nn.Linear(4, 3)
x = torch.randn(5, 4)
F.cross_entropy(m(x), (t(x) / 2).softmax(1)).backward()
F.kl_div(m(x).log_softmax(1), t(x).softmax(1), reduction="batchmean").backward()
F.kl_div(m(x).log_softmax(1), t(x).log_softmax(1), reduction="batchmean", log_target=True).backward()
