import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 8), nn.Linear(8, 1)
    def forward(self, x, state):
        out, state = self.lstm(x, state)
        return self.head(out), state

def repackage(state):
    h, c = state
    return h.detach(), c  # <- freed-graph

net = Net()
opt = torch.optim.Adam(net.parameters())
state = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
for _ in range(3):
    state = repackage(state)
    out, state = net(torch.randn(5, 2, 3), state)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
