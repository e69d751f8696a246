import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.cell = nn.Embedding(7, 6), nn.GRUCell(12, 6)
        self.attn, self.out = nn.Linear(6, 6), nn.Linear(6, 7)

    def forward(self, token, h, memory):
        w = torch.softmax((memory @ self.attn(h).unsqueeze(2)).squeeze(2), 1)
        h = self.cell(torch.cat([self.emb(token), (w.unsqueeze(1) @ memory).squeeze(1)], 1), h)
        return self.out(h), h

enc, dec = nn.GRU(5, 6, batch_first=True), Decoder()
opts = [torch.optim.Adam(m.parameters()) for m in (enc, dec)]
for step in range(3):
    memory, h = enc(torch.randn(4, 5, 5))
    h, token, target = h[0], torch.zeros(4, dtype=torch.long), torch.randint(0, 7, (4, 3))
    loss = 0
    for t in range(3):
        logits, h = dec(token, h, memory)
        loss += F.cross_entropy(logits, target[:, t])
        token = target[:, t] if random.random() < 0.5 else logits.argmax(1).detach()
    for opt in opts:
        opt.zero_grad()
    loss.backward()
    for opt in opts:
        opt.step()
