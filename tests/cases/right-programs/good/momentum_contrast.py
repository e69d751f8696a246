import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(6, 4)
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(4, 16), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum(self):
        for a, b in zip(self.q.parameters(), self.k.parameters()):
            b.data = b.data * 0.99 + a.data * 0.01

    @torch.no_grad()
    def enqueue(self, keys):
        at = int(self.ptr)
        self.queue[:, at : at + len(keys)] = keys.t()
        self.ptr[0] = (at + len(keys)) % 16

    def forward(self, x1, x2):
        q = F.normalize(self.q(x1), dim=1)
        with torch.no_grad():
            self.momentum()
            k = F.normalize(self.k(x2), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        logits = torch.cat([pos, q @ self.queue.clone().detach()], 1) / 0.1
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(x1), dtype=torch.long))

model = MoCo()
opt = torch.optim.SGD(model.q.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(4, 6)
    loss = model(x + 0.1 * torch.randn_like(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
