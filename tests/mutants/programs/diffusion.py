"""A denoising diffusion model of points in the plane, with an exponential moving average of the weights."""

import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    timesteps: int = 20
    batch_size: int = 32
    train_steps: int = 40
    lr: float = 2e-3
    ema_decay: float = 0.95
    grad_clip: float = 0.1


class Denoiser(nn.Module):
    def __init__(self, timesteps, hidden=32):
        super().__init__()
        self.time_embed = nn.Embedding(timesteps, 8)
        self.input = nn.Linear(2 + 8, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, 2)
        self.act = nn.SiLU()

    def forward(self, x, t):
        emb = self.time_embed(t)
        h = self.act(self.input(torch.cat([x, emb], dim=-1)))
        h = h + self.act(self.middle(h))
        return self.output(h)


class GaussianDiffusion:
    def __init__(self, timesteps):
        self.timesteps = timesteps
        self.betas = torch.linspace(1e-3, 0.2, timesteps)
        self.alphas_cumprod = torch.cumprod(1 - self.betas, dim=0)

    def q_sample(self, x_start, t, noise):
        a = self.alphas_cumprod[t].unsqueeze(-1)
        return a.sqrt() * x_start + (1 - a).sqrt() * noise

    def p_losses(self, model, x_start):
        t = torch.randint(0, self.timesteps, (x_start.size(0),))
        noise = torch.randn_like(x_start)
        x_noisy = self.q_sample(x_start, t, noise)
        predicted = model(x_noisy, t)
        return torch.mean((noise - predicted) ** 2)

    @torch.no_grad()
    def sample(self, model, count):
        x = torch.randn(count, 2)
        for i in reversed(range(self.timesteps)):
            t = torch.full((count,), i)
            beta, a = self.betas[i], self.alphas_cumprod[i]
            mean = (x - beta / (1 - a).sqrt() * model(x, t)) / (1 - beta).sqrt()
            x = mean + beta.sqrt() * torch.randn_like(x) if i > 0 else mean
        return x


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.shadow.eval()

    def update(self, model):
        with torch.no_grad():
            for ema_param, param in zip(self.shadow.parameters(), model.parameters(), strict=True):
                ema_param.lerp_(param, 1 - self.decay)


def moons(count):
    angle = torch.rand(count) * 3.14
    points = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
    return points + 0.05 * torch.randn(count, 2)


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(0)
    model = Denoiser(cfg.timesteps)
    diffusion, ema = GaussianDiffusion(cfg.timesteps), EMA(model, cfg.ema_decay)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for step in range(cfg.train_steps):
        loss = diffusion.p_losses(model, moons(cfg.batch_size))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        opt.step()
        ema.update(model)
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("sampled", diffusion.sample(ema.shadow, 16).std().item())
