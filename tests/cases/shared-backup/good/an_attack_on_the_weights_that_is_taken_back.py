import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(16, 4), torch.randn(16, 1)



class Attack:
    def __init__(self, model):
        self.model, self.backup = model, {}

    def begin(self):
        for name, p in self.model.named_parameters():
            self.backup[name] = p.data.clone()
            p.data.add_(0.1 * p.grad / p.grad.norm())

    def end(self):
        for name, p in self.model.named_parameters():
            p.data = self.backup[name]
        self.backup = {}


attack = Attack(model)
for epoch in range(4):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    attack.begin()
    loss_fn(model(x), y).backward()
    attack.end()
    optimizer.step()
