import torch
from torch import nn

torch.manual_seed(0)

class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 6)
        self.head = nn.Linear(6, 1)
        self.reset()

    def reset(self):
        self.hidden = torch.zeros(1, 2, 6)

    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)  # <- freed-graph
        return self.head(out)

model = Tracker()
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    loss = model(torch.randn(5, 2, 3)).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
