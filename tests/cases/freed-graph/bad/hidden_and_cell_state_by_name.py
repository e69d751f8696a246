import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def train(model, head, opt, chunks):
    h, c = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
    for x, y in chunks:
        out, (h, c) = model(x, (h, c))  # <- freed-graph
        loss = F.mse_loss(head(out), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
train(lstm, head, opt, [(torch.randn(5, 2, 3), torch.randn(5, 2, 1)) for _ in range(3)])
