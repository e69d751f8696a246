import torch
from torch import nn

torch.manual_seed(0)

class Loop:
    def __init__(self):
        self.m = nn.Linear(4, 1)
        self.o = torch.optim.Adam(self.m.parameters())
        self.accum = 16

    def epoch(self, data):
        count = 0
        for x in data:
            self.backward(x)
            count += 1
            if count >= self.accum:  # <- never-stepped
                self.o.step()
                self.o.zero_grad()
                count = 0

    def backward(self, x):
        (self.m(x).pow(2).mean() / self.accum).backward()


l = Loop()
for _ in range(4):
    l.epoch([torch.randn(4, 4) for _ in range(10)])
