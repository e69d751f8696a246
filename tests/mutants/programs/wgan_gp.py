"""A Wasserstein GAN with gradient penalty: several critic steps for each step of the generator."""

import torch
from torch import autograd, nn

LAMBDA = 10.0
CRITIC_ITERS = 3
DIM = 16


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, DIM), nn.Tanh(), nn.Linear(DIM, DIM), nn.Tanh(), nn.Linear(DIM, 1, bias=False)
        )

    def forward(self, inputs):
        return self.main(inputs).view(-1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(4, DIM), nn.ReLU(True), nn.Linear(DIM, 2))

    def forward(self, noise):
        return self.main(noise)


def calc_gradient_penalty(critic, real_data, fake_data):
    alpha = torch.rand(real_data.size(0), 1)
    interpolates = alpha * real_data + (1 - alpha) * fake_data
    interpolates.requires_grad_(True)
    disc_interpolates = critic(interpolates)
    gradients = autograd.grad(
        outputs=disc_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(disc_interpolates),
        create_graph=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


def inf_train_gen(batch):
    centers = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    while True:
        index = torch.randint(0, 4, (batch,))
        yield centers[index] + 0.05 * torch.randn(batch, 2)


def train_critic(critic, generator, optimizer, data):
    real = next(data)
    with torch.no_grad():
        fake = generator(torch.randn(real.size(0), 4))
    optimizer.zero_grad()
    wasserstein = critic(real).mean() - critic(fake).mean()
    penalty = calc_gradient_penalty(critic, real, fake)
    loss = -wasserstein + penalty
    loss.backward()
    optimizer.step()
    return wasserstein.item()


def train_generator(critic, generator, optimizer):
    for p in critic.parameters():
        p.requires_grad = False
    optimizer.zero_grad()
    fake = generator(torch.randn(16, 4))
    loss = -critic(fake).mean()
    loss.backward()
    optimizer.step()
    for p in critic.parameters():
        p.requires_grad = True
    return loss.item()


def main():
    torch.manual_seed(1)
    critic, generator = Critic(), Generator()
    optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    data = inf_train_gen(16)
    for iteration in range(24):
        for _ in range(CRITIC_ITERS):
            distance = train_critic(critic, generator, optimizer_c, data)
        cost = train_generator(critic, generator, optimizer_g)
        if iteration % 8 == 0:
            print(f"iteration {iteration} distance {distance:.4f} generator {cost:.4f}")


main()
