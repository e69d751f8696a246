import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def local_update(net, batches, mu):
    anchor = copy.deepcopy(net.state_dict())
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for x, y in batches:
        drift = torch.zeros(())
        for k, v in net.named_parameters():
            drift = drift + torch.square(v - anchor[k]).sum()
        objective = F.cross_entropy(net(x), y) + 0.5 * mu * drift
        opt.zero_grad()
        objective.backward()
        with torch.no_grad():
            for k, v in net.named_parameters():
                v.grad.add_(v - anchor[k], alpha=0.01)
        opt.step()

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
for _ in range(2):
    local_update(net, [(torch.randn(8, 4), torch.randint(3, (8,))) for _ in range(6)], 0.1)
