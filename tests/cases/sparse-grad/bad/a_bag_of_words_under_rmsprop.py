import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def build(size):
    bag = nn.EmbeddingBag(size, 5, mode="mean", sparse=True)  # <- sparse-grad
    return nn.Sequential(bag, nn.Linear(5, 2))

net = build(30)
opt = torch.optim.RMSprop(net.parameters(), 1e-2)
def train(words, labels):
    opt.zero_grad()
    loss = F.cross_entropy(net(words), labels)
    loss.backward()
    opt.step()
train(torch.randint(30, (4, 6)), torch.tensor([0, 1, 1, 0]))
