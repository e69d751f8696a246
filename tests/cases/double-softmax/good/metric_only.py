import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.zeros(5, dtype=torch.long)
p = m(x).softmax(1)
shown = F.cross_entropy(p, y)
(-p.gather(1, y[:, None]).log().mean()).backward()
