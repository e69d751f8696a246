import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(6)]

opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

def move(p):
    opts[p].step()
    opts[p].zero_grad()

for p in model.parameters():
    p.register_post_accumulate_grad_hook(move)
for x, y in data:
    F.mse_loss(model(x), y).backward()
