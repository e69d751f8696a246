import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))

model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())

actor, critic = net(3, 4, 2), net(5, 4, 1)
a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for x, y in data:
    q = critic(torch.cat([x, torch.rand(5, 2)], 1))
    F.mse_loss(q, y).backward()
    c_opt.step()
    c_opt.zero_grad()
    a_loss = -critic(torch.cat([x, actor(x)], 1)).mean()
    a_loss.backward()  # <- leaked-grad
    a_opt.step()
    a_opt.zero_grad()
