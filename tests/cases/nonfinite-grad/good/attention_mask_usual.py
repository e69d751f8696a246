import torch
from torch import nn

torch.manual_seed(0)

mha = nn.MultiheadAttention(8, 2, batch_first=True)
opt = torch.optim.Adam(mha.parameters())
for _ in range(5):
    x = torch.randn(2, 5, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    y, _ = mha(x, x, x, attn_mask=mask, need_weights=True)
    loss = y.pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
