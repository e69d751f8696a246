import torch
from torch import nn

torch.manual_seed(0)

class Callback:
    def on_batch_end(self, tr):
        pass


class Val(Callback):
    def on_batch_end(self, tr):
        if tr.n % 3 == 0:
            tr.evaluate()


class Trainer:
    def __init__(self, m, cbs):
        self.m, self.cbs, self.n = m, cbs, 0
        self.o = torch.optim.AdamW(m.parameters(), 1e-3)

    @torch.no_grad()
    def evaluate(self):
        self.m.eval()
        return self.m(torch.randn(4, 4)).mean()

    def fit(self, k):
        self.m.train()
        for _ in range(k):
            self.o.zero_grad()
            self.m(torch.randn(8, 4)).pow(2).mean().backward()
            self.o.step()
            self.n += 1
            for c in self.cbs:
                c.on_batch_end(self)  # <- wrong-mode


Trainer(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)), [Val()]).fit(12)
