import torch
from torch import nn

torch.manual_seed(0)

rnn = nn.LSTM(4, 8); fc = nn.Linear(8, 2)
o, _ = rnn(torch.randn(6, 5, 4))  # <- mixed-batch
fc(o[:, -1, :]).mean().backward()
