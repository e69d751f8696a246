import torch
from torch import nn

torch.manual_seed(0)

class LoRA(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.a = nn.Parameter(0.1 * torch.randn(r, base.in_features))
        self.b = nn.Parameter(0.1 * torch.randn(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()

model = nn.Sequential(LoRA(nn.Linear(4, 8)), nn.ReLU(), LoRA(nn.Linear(8, 2)))
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for i in range(8):
    loss = model(torch.randn(4, 4)).pow(2).mean() / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad(set_to_none=True)
