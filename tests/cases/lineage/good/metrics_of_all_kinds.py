import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


net = mlp(4, 3)
opt = torch.optim.Adam(net.parameters())
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
history, best = {"loss": [], "acc": []}, float("inf")
for _ in range(10):
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    logits = net(x)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history["loss"].append(loss.item())
    history["acc"].append((logits.argmax(1) == y).float().mean().item())
    ema = 0.9 * history["loss"][-1] + 0.1 * loss.item()
    sched.step(loss.item())
    if loss < best:
        best = loss.detach()
    norm = sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5
