"""A variational autoencoder."""

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(3)


class VAE(nn.Module):
    def __init__(self, size=36, latent=4):
        super().__init__()
        self.fc1 = nn.Linear(size, 32)
        self.fc21 = nn.Linear(32, latent)
        self.fc22 = nn.Linear(32, latent)
        self.fc3 = nn.Linear(latent, 32)
        self.fc4 = nn.Linear(32, size)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = torch.tanh(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(x.size(0), -1))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(x.size(0), -1), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def batches(count):
    for _ in range(count):
        rows = torch.rand(16, 6, 1) > 0.5
        yield rows.float().expand(16, 6, 6) * 0.9 + 0.05


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(batches(20)):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / (batch_idx + 1) / 16:.4f}")


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data in batches(8):
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
    print(f"====> Test set loss: {test_loss / 8 / 16:.4f}")


for epoch in range(1, 4):
    train(epoch)
    test(epoch)
with torch.no_grad():
    sample = model.decode(torch.randn(4, 4))
    print(sample.shape)
