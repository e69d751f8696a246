import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3); x = torch.randn(6, 4)
F.nll_loss(F.log_softmax(m(x), dim=1), torch.randint(0, 3, (6,))).backward()
p = m(x).softmax(1)
p.gather(1, torch.zeros(6, 1, dtype=torch.long)).log().mean().backward()
