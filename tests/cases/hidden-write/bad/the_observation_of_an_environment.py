import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

class Env:
    def __init__(self):
        self.obs = np.zeros(4, dtype=np.float32)

    def step(self):
        self.obs += 1.0  # <- hidden-write
        return self.obs

env, policy = Env(), nn.Linear(4, 2)
chosen, obs = [], env.obs
for _ in range(5):
    chosen.append(torch.log_softmax(policy(torch.from_numpy(obs)), -1)[0])
    obs = env.step()
loss = -torch.stack(chosen).sum()
loss.backward()
