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

opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
x, y = data[0]

def closure():
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss

for _ in range(5):
    opt.step(closure)
