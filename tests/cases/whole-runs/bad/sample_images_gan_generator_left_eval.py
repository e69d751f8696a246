import torch
from torch import nn

torch.manual_seed(0)

G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())


def sample(net, n):
    net.eval()
    with torch.no_grad():
        return net(torch.randn(n, 4))


for i in range(20):
    od.zero_grad()
    (D(G(torch.randn(8, 4)).detach()).mean() - D(torch.randn(8, 6)).mean()).backward()
    od.step()
    og.zero_grad()
    (-D(G(torch.randn(8, 4))).mean()).backward()
    og.step()
    if i == 9:
        imgs = sample(G, 4)  # <- wrong-mode
