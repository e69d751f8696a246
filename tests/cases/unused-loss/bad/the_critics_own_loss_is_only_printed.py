import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))

critic = mlp()
opt = torch.optim.Adam(critic.parameters())
for step in range(8):
    real, fake = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4)
    w_loss = critic(fake).mean() - F.softplus(critic(real)).mean()  # <- unused-loss
    (g,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    penalty = ((g.norm(2, 1) - 1) ** 2).mean()
    opt.zero_grad()
    penalty.backward()
    opt.step()
    print(w_loss.item())
