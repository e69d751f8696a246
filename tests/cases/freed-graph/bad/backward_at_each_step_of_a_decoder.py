import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

encoder, decoder, out = nn.GRU(4, 6), nn.GRUCell(4, 6), nn.Linear(6, 4)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *out.parameters()])
source, target = torch.randn(5, 2, 4), torch.randn(5, 2, 4)
_, h = encoder(source)
h, token = h[0], torch.zeros(2, 4)
opt.zero_grad()
for t in range(5):
    h = decoder(token, h)  # <- freed-graph
    loss = F.mse_loss(out(h), target[t])
    loss.backward()
    token = target[t]
opt.step()
