import torch
from torch import nn

torch.manual_seed(0)

emb = nn.Embedding(9, 3, sparse=True)
opt = torch.optim.SparseAdam(emb.parameters())
for _ in range(3):
    opt.zero_grad(set_to_none=False)
    emb(torch.randint(0, 9, (4,))).pow(2).sum().backward()
    opt.step()
