import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(6, 5, 4)
p = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 5, 4, 3, 2, 1]), batch_first=True)
o, h = nn.LSTM(4, 8, batch_first=True)(p)
o, _ = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
o[:, -1].mean().backward()
o, h = nn.GRU(4, 8, batch_first=True)(p)
