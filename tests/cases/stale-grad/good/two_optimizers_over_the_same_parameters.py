import torch
from torch import nn

torch.manual_seed(0)

emb, lin = nn.Embedding(5, 3), nn.Linear(3, 1)
params = [*emb.parameters(), *lin.parameters()]
slow, fast = torch.optim.SGD(params, lr=0.01), torch.optim.Adam(params, lr=0.01)
for _ in range(3):
    slow.zero_grad()
    lin(emb(torch.randint(0, 5, (8,)))).pow(2).mean().backward()
    slow.step()
    fast.step()
