import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)

class Augmented(Dataset):
    def __init__(self, aug, n):
        self.x = torch.tanh(aug(torch.randn(n, 3)))  # <- freed-graph

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]

aug, net = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.Adam([*aug.parameters(), *net.parameters()])
for batch in DataLoader(Augmented(aug, 12), batch_size=4):
    loss = net(batch).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
