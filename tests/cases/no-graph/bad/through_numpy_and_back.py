import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

def smooth(x):
    return torch.from_numpy(np.convolve(x.detach().numpy(), np.ones(3) / 3, "same"))  # <- no-graph

model = nn.Linear(4, 1)
out = model(torch.randn(8, 4)).squeeze(1)
loss = smooth(out).pow(2).mean()
loss.backward()
