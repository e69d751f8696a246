"""A mixture density network for a relation with several branches; trained with a cosine schedule."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Arcs(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        y = torch.rand(count, 1, generator=g) * 2 - 1
        self.x = y + 0.3 * torch.sin(6 * y) + 0.05 * torch.randn(count, 1, generator=g)
        self.y = y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class MDN(nn.Module):
    def __init__(self, hidden=24, components=4):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, components)
        self.mu = nn.Linear(hidden, components)
        self.log_sigma = nn.Linear(hidden, components)

    def forward(self, x):
        h = self.backbone(x)
        return torch.log_softmax(self.pi(h), dim=-1), self.mu(h), self.log_sigma(h).clamp(-4, 2)

    def nll(self, x, y):
        log_pi, mu, log_sigma = self(x)
        z = (y - mu) / log_sigma.exp()
        log_prob = -0.5 * z.square() - log_sigma - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(log_pi + log_prob, dim=-1).mean()


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    best = float("inf")
    for epoch in range(epochs):
        model.train()
        epoch_loss = 0.0
        for x, y in loader:
            loss = model.nll(x, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            epoch_loss += loss.item() * len(x)
        best = min(best, epoch_loss / len(loader.dataset))
        print(f"epoch {epoch} nll {epoch_loss / len(loader.dataset):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    return best


def score(model, loader):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        values = [model.nll(x, y).item() for x, y in loader]
    model.train(was_training)
    return sum(values) / len(values)


if __name__ == "__main__":
    torch.manual_seed(17)
    model = MDN()
    print("best", fit(model, DataLoader(Arcs(160, 0), batch_size=16, shuffle=True), epochs=4, lr=1e-2))
    print("held out", score(model, DataLoader(Arcs(96, 1), batch_size=16)))
