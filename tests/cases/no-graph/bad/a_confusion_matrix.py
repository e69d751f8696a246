import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3)

def f1(logits, y):
    pred = logits.argmax(1)  # <- no-graph
    matrix = torch.zeros(3, 3)
    for p, t in zip(pred, y):
        matrix[p, t] += 1
    return 1 - matrix.diag().sum() / matrix.sum()

loss = f1(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
loss.backward()
