import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.out.weight = self.inp.weight

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x)))

net = Tied()
opt = torch.optim.SGD(net.parameters(), 0.05)
start = [p.detach().clone() for p in net.parameters()]
for _ in range(8):
    x = torch.randn(8, 4)
    loss = F.mse_loss(net(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    assert float((net.inp.weight - net.out.weight).abs().max()) == 0.0
    print(loss.item(), sum((p - s).norm() for p, s in zip(net.parameters(), start)).item())
