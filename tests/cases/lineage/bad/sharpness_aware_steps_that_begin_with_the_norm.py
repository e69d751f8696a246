import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


class SAM:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho = list(params), base, rho

    def grad_norm(self):
        return torch.stack([p.grad.norm(2) for p in self.params]).norm(2)  # <- grad-before-backward

    def ascend(self):
        scale = self.rho / (self.grad_norm() + 1e-12)
        with torch.no_grad():
            for p in self.params:
                p.add_(p.grad * scale)

net = mlp(4, 1)
sam = SAM(net.parameters(), torch.optim.SGD(net.parameters(), 0.1))
x = torch.randn(16, 4)
for _ in range(3):
    loss = F.mse_loss(net(x), x[:, :1])
    sam.ascend()
    loss.backward()
    sam.base.step()
