import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

embedding, head = nn.Embedding(9, 4), nn.Linear(4, 2)
opt = torch.optim.Adam([*embedding.parameters(), *head.parameters()])
for _ in range(4):
    words, labels = torch.randint(9, (6, 5)), torch.randint(2, (6,))
    F.cross_entropy(head(embedding(words).mean(1)), labels).backward()
    weight = embedding.weight
    backup = weight.data.clone()
    weight.data.add_(weight.grad / weight.grad.norm())
    F.cross_entropy(head(embedding(words).mean(1)), labels).backward()
    weight.data = backup
    opt.step()
    opt.zero_grad()
