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

q, target = net(3, 4, 1), net(3, 4, 1)
q_opt = torch.optim.Adam(q.parameters())
for x, y in data:
    loss = F.mse_loss(q(x), y + 0.9 * target(x))
    q_opt.zero_grad()
    loss.backward()  # <- leaked-grad
    q_opt.step()
    for p, t in zip(q.parameters(), target.parameters()):
        t.data.mul_(0.9).add_(0.1 * p.data)
