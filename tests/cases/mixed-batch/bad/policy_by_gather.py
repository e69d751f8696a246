import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

m = nn.Linear(4, 3); x = torch.randn(6, 4); a = torch.randint(0, 3, (6, 1))
p = F.softmax(m(x), dim=0)  # <- mixed-batch
(-p.gather(1, a).squeeze(1).log()).mean().backward()
