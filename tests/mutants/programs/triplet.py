"""Metric learning with triplets, a proxy classifier and gradient clipping by parameter group."""

import torch
from torch import nn
from torch.nn import functional as F


class EmbeddingNet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.PReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.PReLU(), nn.MaxPool2d(2)
        )
        self.fc = nn.Sequential(nn.Linear(32, 24), nn.PReLU(), nn.Linear(24, dim))

    def forward(self, x):
        output = self.convnet(x)
        output = output.view(output.size(0), -1)
        return self.fc(output)

    def get_embedding(self, x):
        return self.forward(x)


class ProxyHead(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, dim))
        self.scale = nn.Parameter(torch.tensor(4.0))

    def forward(self, embedding):
        return self.scale * F.normalize(embedding, dim=1) @ F.normalize(self.proxies, dim=1).t()


class Digits:
    def __init__(self, classes=4):
        self.prototypes = torch.randn(classes, 1, 14, 14)

    def draw(self, labels):
        return self.prototypes[labels] + 0.8 * torch.randn(len(labels), 1, 14, 14)

    def triplets(self, count):
        anchor = torch.randint(0, 4, (count,))
        negative = (anchor + torch.randint(1, 4, (count,))) % 4
        return self.draw(anchor), self.draw(anchor), self.draw(negative), anchor


def triplet_loss(anchor, positive, negative, margin=1.0):
    distance_positive = (anchor - positive).pow(2).sum(1)
    distance_negative = (anchor - negative).pow(2).sum(1)
    losses = F.relu(distance_positive - distance_negative + margin)
    return losses.mean()


def train_epoch(digits, net, head, optimizer, net_clip=2.0, head_clip=0.5):
    net.train()
    losses = []
    for _ in range(12):
        a, p, n, label = digits.triplets(8)
        optimizer.zero_grad()
        embedded = net(a)
        metric = triplet_loss(embedded, net(p), net(n))
        proxy = F.cross_entropy(head(embedded), label)
        loss = metric + 0.5 * proxy
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), net_clip)
        nn.utils.clip_grad_norm_(head.parameters(), head_clip)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def evaluate(digits, net, head):
    net.eval()
    correct = 0
    for _ in range(6):
        label = torch.randint(0, 4, (16,))
        with torch.no_grad():
            correct += (head(net.get_embedding(digits.draw(label))).argmax(1) == label).sum().item()
    return correct / 96


torch.manual_seed(31)
digits = Digits()
net, head = EmbeddingNet(), ProxyHead(8, 4)
optimizer = torch.optim.Adam([{"params": net.parameters(), "lr": 2e-3}, {"params": head.parameters(), "lr": 1e-2}])
for epoch in range(3):
    print(f"epoch {epoch}: {train_epoch(digits, net, head, optimizer):.4f} {evaluate(digits, net, head):.3f}")
