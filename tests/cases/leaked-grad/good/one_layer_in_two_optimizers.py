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

trunk, actor, critic = net(3, 4), net(4, 2), net(4, 1)
a_opt = torch.optim.Adam([*trunk.parameters(), *actor.parameters()])
c_opt = torch.optim.Adam([*trunk.parameters(), *critic.parameters()])
for x, y in data:
    a_opt.zero_grad(); c_opt.zero_grad()
    h = trunk(x)
    (actor(h).log_softmax(1)[:, 0] * y.squeeze(1)).mean().backward(retain_graph=True)
    F.mse_loss(critic(h), y).backward()
    a_opt.step(); c_opt.step()  # also duplicate-parameter
