import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

emb, lin = nn.Embedding(10, 4), nn.Linear(4, 4)
opt = torch.optim.Adam([*emb.parameters(), *lin.parameters()])
for epoch in range(2):
    nodes = torch.relu(lin(emb.weight))  # <- freed-graph
    for _ in range(3):
        i, j = torch.randint(0, 10, (2, 8))
        score = (nodes[i] * nodes[j]).sum(1)
        loss = F.binary_cross_entropy_with_logits(score, torch.ones(8))
        opt.zero_grad()
        loss.backward()
        opt.step()
