import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

rng = np.random.default_rng(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
stage, memory = np.zeros((4, 3), np.float32), np.zeros((20, 3), np.float32)
for turn in range(10):
    stage[:] = rng.normal(size=stage.shape)
    memory[turn] = stage[0]
    loss = net(torch.from_numpy(stage)).mean() + net(torch.from_numpy(memory[: turn + 1].copy())).mean()
    memory *= 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
