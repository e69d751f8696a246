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

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, grad): return -grad

features, label, domain = net(3, 4), net(4, 1), net(4, 1)
f_opt = torch.optim.Adam(features.parameters())
h_opt = torch.optim.Adam([*label.parameters(), *domain.parameters()])
for x, y in data:
    f_opt.zero_grad(); h_opt.zero_grad()
    h = features(x)
    label_loss, d_loss = F.mse_loss(label(h), y), domain(Reverse.apply(h)).mean()
    label_loss.backward(retain_graph=True)
    d_loss.backward()
    f_opt.step(); h_opt.step()
