import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class LM(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, v, bias=False)
        self.tie()

    def tie(self):
        self.head.weight = self.emb.weight

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


m = LM(12)


def load_glove(m):
    m.emb = nn.Embedding.from_pretrained(torch.randn(12, 8), freeze=False)  # <- broken-tie


load_glove(m)
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x = torch.randint(12, (4, 6))
    l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
    o.zero_grad()
    l.backward()
    o.step()
