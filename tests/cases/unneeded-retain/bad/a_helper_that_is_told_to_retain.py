import torch
from torch import nn

torch.manual_seed(0)

class Runner:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def backward(self, loss, retain_graph=False):
        self.opt.zero_grad()
        loss.backward(retain_graph=retain_graph)
        self.opt.step()

a, b = Runner(nn.Linear(3, 1)), Runner(nn.Linear(3, 1))
for _ in range(3):
    a.backward(a.net(torch.randn(8, 3)).pow(2).mean(), retain_graph=True)  # <- unneeded-retain
    b.backward(b.net(torch.randn(8, 3)).pow(2).mean())
