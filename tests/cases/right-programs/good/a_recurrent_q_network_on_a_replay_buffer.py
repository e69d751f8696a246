import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)

class DRQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.q = nn.LSTMCell(3, 8), nn.Linear(8, 2)

    def forward(self, s, state):
        h, c = self.lstm(s, state)
        return self.q(h), (h, c)

net, buffer = DRQN(), deque(maxlen=50)
opt = torch.optim.Adam(net.parameters())
state = (torch.zeros(1, 8), torch.zeros(1, 8))
for step in range(12):
    s = torch.randn(1, 3)
    with torch.no_grad():
        q, state = net(s, state)
    buffer.append((s, tuple(x.clone() for x in state), q.argmax(1)))
    if len(buffer) > 4:
        loss = 0
        for s, st, a in random.sample(list(buffer), 4):
            q, _ = net(s, st)
            loss = loss + (q.gather(1, a.unsqueeze(1)) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
