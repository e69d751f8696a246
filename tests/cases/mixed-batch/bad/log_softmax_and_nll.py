import torch
from torch import nn

torch.manual_seed(0)

m = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0)); x = torch.randn(6, 4)
nn.NLLLoss()(m(x), torch.randint(0, 3, (6,))).backward()  # <- mixed-batch
