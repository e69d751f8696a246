import torch
from torch import nn

torch.manual_seed(0)

gate, experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
opt = torch.optim.Adam([*gate.parameters(), *experts.parameters()])
for _ in range(8):
    x = torch.randn(16, 4)
    weight, which = gate(x).softmax(-1).topk(1, dim=-1)
    out = torch.stack([expert(x) for expert in experts], 1)
    opt.zero_grad()
    (weight * out[torch.arange(16), which[:, 0]]).pow(2).mean().backward()
    opt.step()
