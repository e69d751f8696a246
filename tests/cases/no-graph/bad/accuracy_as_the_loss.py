import torch
from torch import nn

torch.manual_seed(0)

def accuracy(logits, y):
    correct = logits.argmax(-1) == y  # <- no-graph
    return correct.float().mean()

model = nn.Linear(4, 3)
loss = 1 - accuracy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
loss.backward()
