import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

class Loader:
    def __init__(self):
        self.stage = np.empty((4, 3), dtype=np.float32)
        self.stage[:] = 0.0

    def __iter__(self):
        for turn in range(4):
            self.stage[:] = turn + 1  # <- hidden-write
            yield torch.from_numpy(self.stage)

net = nn.Linear(3, 1)
losses = [net(x).pow(2).mean() for x in Loader()]
torch.stack(losses).mean().backward()
