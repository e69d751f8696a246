import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


net, log_t = mlp(4, 3), nn.Parameter(torch.tensor(0.3))
opt = torch.optim.Adam([*net.parameters(), log_t])
for _ in range(8):
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    loss = F.cross_entropy(net(x) * log_t.exp(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        log_t.clamp_(0, 4)
    shown = {"t": log_t.exp().item()}
    print(f"{log_t.item():.2f} {shown['t']:.2f}")
