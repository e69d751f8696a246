import torch
from torch import nn

torch.manual_seed(0)

rnn = nn.LSTM(4, 8, batch_first=True); fc = nn.Linear(8, 2)
o, _ = rnn(torch.randn(5, 6, 4))
fc(o[-1]).mean().backward()  # <- mixed-batch
