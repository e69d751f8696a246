"""A small GAN with a fault: the discriminator's backward runs into the generator's graph, which is freed by then."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)

for _ in range(10):
    real = torch.randn(32, 2) * 0.5 + 2
    fake = generator(torch.randn(32, 4))

    # The generator wants the discriminator to say "real".
    g_optimizer.zero_grad()
    g_loss = bce(discriminator(fake), ones)
    g_loss.backward()
    g_optimizer.step()

    # Here `fake` still belongs to the graph that g_loss.backward() has freed.
    d_optimizer.zero_grad()
    d_loss = bce(discriminator(real), ones) + bce(discriminator(fake), zeros)  # fake.detach() is missing
    d_loss.backward()
    d_optimizer.step()

print(f"generator {g_loss.item():.3f}, discriminator {d_loss.item():.3f}")
