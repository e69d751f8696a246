import torch
from torch import nn
torch.manual_seed(0)
body, head = nn.Linear(6, 12), nn.Linear(12, 1)
model = nn.Sequential(body, nn.Tanh(), head)
X = torch.randn(64, 6); Y = X[:, :1]

def fit(optimizer, steps):
    for _ in range(steps):
        loss = (model(X) - Y).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss.item()

print(fit(torch.optim.Adam(model.parameters(), 1e-2), 10))
print(fit(torch.optim.SGD(head.parameters(), 1e-2), 10))
