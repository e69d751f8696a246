import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(5, 4), nn.Linear(5, 4)
        self.queue = F.normalize(torch.randn(16, 4), dim=1)

    def forward(self, x):
        q, k = F.normalize(self.q(x), dim=1), F.normalize(self.k(x), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.t()], 1)
        self.queue = torch.cat([k, self.queue])[:16]  # <- freed-graph
        return F.cross_entropy(logits / 0.2, torch.zeros(len(x), dtype=torch.long))

model = Contrast()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = model(torch.randn(4, 5))
    opt.zero_grad()
    loss.backward()
    opt.step()
