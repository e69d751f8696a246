import torch
from torch import nn

torch.manual_seed(0)

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()

class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(2, 4))
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.head = nn.Linear(4, 1)

    def with_prompt(self, x):
        prompt = self.prompt.data.unsqueeze(0)  # <- unreached-parameter
        return torch.cat([prompt.expand(len(x), -1, -1), x], 1)

    def forward(self, x):
        return self.head(self.encoder(self.with_prompt(x)).mean(1))

model = Prompted()
x = torch.randn(8, 3, 4)
fit(model, torch.optim.AdamW(model.parameters()), lambda step: model(x).pow(2).mean())
