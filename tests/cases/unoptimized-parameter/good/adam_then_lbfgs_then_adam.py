import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
X = torch.randn(64, 6); Y = X[:, :1]
adam = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(10):
    loss = (model(X) - Y).pow(2).mean()
    adam.zero_grad(); loss.backward(); adam.step()
lb = torch.optim.LBFGS(model.parameters())
def closure():
    lb.zero_grad(); loss = (model(X) - Y).pow(2).mean(); loss.backward(); return loss
for _ in range(10): lb.step(closure)
for _ in range(10):
    loss = (model(X) - Y).pow(2).mean()
    adam.zero_grad(); loss.backward(); adam.step()
print(loss.item())
