"""A generative adversarial network with two optimizers."""

import torch
import torch.nn as nn

torch.manual_seed(999)
latent_dim, batch_size = 8, 16


class Generator(nn.Module):
    def __init__(self):
        super().__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat))
            layers.append(nn.LeakyReLU(0.2))
            return layers

        self.model = nn.Sequential(*block(latent_dim, 16, normalize=False), *block(16, 32), nn.Linear(32, 6), nn.Tanh())

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 16), nn.LeakyReLU(0.2))
        self.head = nn.Linear(16, 1)

    def forward(self, sample):
        return torch.sigmoid(self.head(self.body(sample)))


def real_batch():
    angle = torch.rand(batch_size, 1) * 3
    return torch.cat([torch.cos(angle + k) for k in range(6)], dim=1)


adversarial_loss = nn.BCELoss()
generator = Generator()
discriminator = Discriminator()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))

G_losses, D_losses = [], []
for i in range(40):
    real_imgs = real_batch()
    valid = torch.ones(batch_size, 1)
    fake = torch.zeros(batch_size, 1)

    # -- generator
    optimizer_G.zero_grad()
    z = torch.randn(batch_size, latent_dim)
    gen_imgs = generator(z)
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()

    # -- discriminator
    optimizer_D.zero_grad()
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    optimizer_D.step()

    G_losses.append(g_loss.item())
    D_losses.append(d_loss.item())
    if i % 10 == 0:
        print(f"[Batch {i}] [D loss: {d_loss.item():.4f}] [G loss: {g_loss.item():.4f}]")

print(f"mean D {sum(D_losses) / len(D_losses):.3f} mean G {sum(G_losses) / len(G_losses):.3f}")
