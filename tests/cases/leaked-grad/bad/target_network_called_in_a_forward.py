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

class Byol(nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.target = net(3, 4, 1), net(3, 4, 1)
    def forward(self, x):
        guess = self.online(x)
        return F.mse_loss(guess, self.target(x))

byol = Byol()
opt = torch.optim.SGD(byol.online.parameters(), lr=0.1)
for x, _ in data:
    loss = byol(x)
    opt.zero_grad()
    loss.backward()  # <- leaked-grad
    opt.step()
    with torch.no_grad():
        for p, t in zip(byol.online.parameters(), byol.target.parameters()):
            t.mul_(0.9).add_(p, alpha=0.1)
