import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class LM(nn.Module):
    def __init__(self, words=12, width=6):
        super().__init__()
        self.embed, self.decoder = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.decoder.weight = self.embed.weight

    def forward(self, ids):
        return self.decoder(torch.tanh(self.embed(ids)))

def fit(lm, steps=5):
    opt = torch.optim.SGD(lm.parameters(), lr=0.1)
    for _ in range(steps):
        ids = torch.randint(12, (8,))
        opt.zero_grad()
        F.cross_entropy(lm(ids), ids).backward()
        opt.step()

lm = LM()

average = copy.deepcopy(lm)
lm.load_state_dict(copy.deepcopy(lm.state_dict()))
lm.double().float()
fit(lm)
