import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

net = nn.ModuleDict({"body": nn.Linear(4, 8), "classifier": nn.Linear(8, 2)})
for name, param in net.named_parameters():
    param.requires_grad = "head" in name  # <- no-graph
out = net["classifier"](torch.relu(net["body"](torch.randn(6, 4))))
F.cross_entropy(out, torch.zeros(6, dtype=torch.long)).backward()
