import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(4, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, token, hidden):
        out, hidden = self.gru(token, hidden)
        return self.out(out[:, 0]), hidden


decoder, criterion = Decoder(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(decoder.parameters())
for _ in range(10):
    hidden, loss = torch.zeros(1, 2, 4), 0
    for _ in range(6):
        logits, hidden = decoder(torch.randn(2, 1, 4), hidden)
        loss = loss + criterion(logits, torch.zeros(2).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
