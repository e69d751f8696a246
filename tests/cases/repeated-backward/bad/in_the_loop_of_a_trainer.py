import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.Adam(self.model.parameters())

    def fit(self):
        for _ in range(3):
            self.opt.zero_grad()
            loss = self.model(torch.randn(8, 3)).pow(2).mean()
            loss.backward(retain_graph=True)
            if loss > 0.0:
                loss.backward()  # <- repeated-backward
            self.opt.step()

Trainer().fit()
