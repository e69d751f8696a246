import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

class Env:
    def __init__(self):
        self.obs = np.ones((4, 3), dtype=np.float32)
    def reset(self):
        self.obs[:] = 1.0
        return self.obs
    def step(self):
        self.obs *= 0.5  # <- hidden-write
        return self.obs

env, net = Env(), nn.Linear(3, 1)
for _ in range(2):
    obs, terms = env.reset(), []
    for _ in range(3):
        terms.append(net(torch.from_numpy(obs)).pow(2))
        obs = env.step()
    torch.stack(terms).mean().backward()
