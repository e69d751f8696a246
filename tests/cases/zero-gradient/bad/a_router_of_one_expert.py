import torch
from torch import nn

torch.manual_seed(0)

class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def weights(self, x):
        best, which = self.gate(x).topk(1, dim=-1)
        return best.softmax(-1), which  # <- zero-gradient

    def forward(self, x):
        weight, which = self.weights(x)
        out = torch.stack([expert(x) for expert in self.experts], 1)
        return weight * out[torch.arange(len(x)), which[:, 0]]

net = Router()
opt = torch.optim.Adam(net.parameters())
for _ in range(8):
    opt.zero_grad()
    net(torch.randn(16, 4)).pow(2).mean().backward()
    opt.step()
