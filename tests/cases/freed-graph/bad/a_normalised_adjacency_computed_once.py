import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class GraphNet(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(n, n))
        self.lin = nn.Linear(4, 2)
        self.adj = torch.softmax(self.logits, 1)  # <- freed-graph

    def forward(self, x):
        return self.lin(self.adj @ x)

net = GraphNet(6)
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(6, 4), torch.randint(0, 2, (6,))
for _ in range(3):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
