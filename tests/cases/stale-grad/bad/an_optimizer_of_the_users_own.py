import torch
from torch import nn

torch.manual_seed(0)

class SignSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

model = nn.Linear(3, 1)
opt = SignSGD(model.parameters())
for _ in range(3):
    loss = model(torch.randn(8, 3)).pow(2).mean()
    loss.backward()  # <- stale-grad
    opt.step()
