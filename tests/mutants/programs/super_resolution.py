"""Super-resolution with a frozen feature network as a perceptual loss; a residual generator."""

import torch
from torch import nn, optim


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.prelu = nn.PReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        residual = self.conv1(x)
        residual = self.prelu(residual)
        residual = self.conv2(residual)
        return x + residual


class Generator(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(1, channels, 3, padding=1), nn.PReLU())
        self.residual = nn.ModuleList([ResidualBlock(channels) for _ in range(2)])
        self.up = nn.Sequential(nn.Conv2d(channels, 4 * channels, 3, padding=1), nn.PixelShuffle(2))
        self.last = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x):
        block1 = self.block1(x)
        h = block1
        for block in self.residual:
            h = block(h)
        h = self.up(h + block1)
        return (torch.tanh(self.last(h)) + 1) / 2


class GeneratorLoss(nn.Module):
    def __init__(self):
        super().__init__()
        loss_network = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3)).eval()
        for param in loss_network.parameters():
            param.requires_grad = False
        self.loss_network = loss_network
        self.mse_loss = nn.MSELoss()

    def forward(self, out_images, target_images):
        perception_loss = self.mse_loss(self.loss_network(out_images), self.loss_network(target_images))
        image_loss = self.mse_loss(out_images, target_images)
        tv_loss = self.total_variation(out_images)
        return image_loss + 0.06 * perception_loss + 2e-3 * tv_loss

    @staticmethod
    def total_variation(x):
        h_tv = torch.pow(x[:, :, 1:, :] - x[:, :, :-1, :], 2).mean()
        w_tv = torch.pow(x[:, :, :, 1:] - x[:, :, :, :-1], 2).mean()
        return h_tv + w_tv


def pictures(count):
    for _ in range(count):
        high = torch.rand(4, 1, 6, 6).repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
        yield nn.functional.avg_pool2d(high, 2), high


def validate(netG):
    netG.eval()
    mse = 0.0
    with torch.no_grad():
        for low, high in pictures(6):
            mse += ((netG(low) - high) ** 2).mean().item()
    return mse / 6


def main():
    torch.manual_seed(9)
    netG, generator_criterion = Generator(), GeneratorLoss()
    optimizerG = optim.Adam(netG.parameters(), lr=2e-3)
    results = {"loss": [], "mse": []}
    for _epoch in range(1, 4):
        netG.train()
        running = {"batches": 0, "loss": 0.0}
        for low, high in pictures(10):
            sr = netG(low)
            g_loss = generator_criterion(sr, high)
            optimizerG.zero_grad()
            g_loss.backward()
            optimizerG.step()
            running["loss"] += g_loss.item()
            running["batches"] += 1
        results["loss"].append(running["loss"] / running["batches"])
        results["mse"].append(validate(netG))
    print({key: [round(v, 4) for v in values] for key, values in results.items()})


main()
