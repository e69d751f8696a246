import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

class Evaluator:
    def predict(self, batches):
        model.eval()
        scores = []
        for x, _ in batches:
            scores.append(model(x).sigmoid())  # <- graph-growth
        model.train()
        return torch.cat(scores)

for _ in range(2):
    step()
    print(Evaluator().predict([batch() for _ in range(8)]).mean())
