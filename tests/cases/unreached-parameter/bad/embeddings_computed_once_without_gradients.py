import torch
from torch import nn

torch.manual_seed(0)
speaker, decoder = nn.Embedding(5, 8), nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 8))
optimizer = torch.optim.AdamW([*speaker.parameters(), *decoder.parameters()], lr=1e-2)


def encode(ids):
    with torch.no_grad():  # <- unreached-parameter
        return speaker(ids)


conditions = encode(torch.arange(5))
for _ in range(6):
    ids, x = torch.randint(0, 5, (32,)), torch.randn(32, 8)
    out = decoder(torch.cat([x, conditions[ids]], dim=1))
    loss = (out - x * ids[:, None]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
