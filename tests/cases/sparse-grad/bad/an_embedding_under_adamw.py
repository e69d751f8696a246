import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Recommender(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.users = nn.Embedding(users, 4, sparse=True)  # <- sparse-grad
        self.items = nn.Embedding(items, 4)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(1) + self.bias

model = Recommender(10, 20)
opt = torch.optim.AdamW(model.parameters())
for _ in range(3):
    u, i = torch.randint(10, (8,)), torch.randint(20, (8,))
    opt.zero_grad()
    F.mse_loss(model(u, i), torch.rand(8)).backward()
    opt.step()
