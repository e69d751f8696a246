import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.body = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.body(x), self.shift(x)  # also note: unreached-parameter


model = Classifier()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(8):
    logits, moved = model(torch.randn(16, 6))
    loss = F.cross_entropy(logits, torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{moved.norm().item():.3f}")
