import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def local_update(net, batches, mu):
    anchor = {k: v for k, v in net.state_dict().items()}
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for x, y in batches:
        out = net(x)
        task = F.cross_entropy(out, y)
        drift = torch.zeros(())
        for k, v in net.named_parameters():
            drift = drift + torch.square(v - anchor[k]).sum()  # <- dead-loss-term
        objective = task + 0.5 * mu * drift
        opt.zero_grad()
        objective.backward()
        opt.step()

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
for _ in range(2):
    local_update(net, [(torch.randn(8, 4), torch.randint(3, (8,))) for _ in range(6)], 0.1)
