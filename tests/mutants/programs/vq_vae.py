"""A vector-quantized autoencoder: a codebook, a commitment loss and a straight-through estimator."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ExponentialLR


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost):
        super().__init__()
        self.embedding = nn.Embedding(num_embeddings, embedding_dim)
        self.embedding.weight.data.uniform_(-0.5, 0.5)
        self.commitment_cost = commitment_cost

    def forward(self, inputs):
        distances = (
            inputs.pow(2).sum(1, keepdim=True)
            + self.embedding.weight.pow(2).sum(1)
            - 2 * inputs @ self.embedding.weight.t()
        )
        indices = distances.argmin(1)
        quantized = self.embedding(indices)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self.commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        return loss, quantized, indices


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 4))
        self.vq = VectorQuantizer(8, 4, 0.25)
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 10))

    def forward(self, x):
        z = self.encoder(x)
        vq_loss, quantized, indices = self.vq(z)
        x_recon = self.decoder(quantized)
        return vq_loss, x_recon, indices


def samples(size=32):
    kind = torch.randint(0, 4, (size,))
    return torch.sin(torch.arange(10) * (kind.unsqueeze(1) + 1) / 3) + 0.1 * torch.randn(size, 10)


def main(num_updates=40):
    torch.manual_seed(14)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, amsgrad=False)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    train_recon, train_codes = [], set()
    model.train()
    for i in range(num_updates):
        data = samples()
        optimizer.zero_grad()
        vq_loss, data_recon, codes = model(data)
        recon_error = F.mse_loss(data_recon, data) / 0.5
        loss = recon_error + vq_loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        train_recon.append(recon_error.item())
        train_codes.update(codes.tolist())
        if (i + 1) % 10 == 0:
            print(f"{i + 1} iterations recon_error {sum(train_recon[-10:]) / 10:.3f} codes {len(train_codes)}")
    model.eval()
    with torch.no_grad():
        held_out = [F.mse_loss(model(samples())[1], samples()).item() for _ in range(5)]
    print(f"held out {sum(held_out) / 5:.3f}")


if __name__ == "__main__":
    main()
