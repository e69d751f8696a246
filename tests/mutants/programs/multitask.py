"""Two tasks on one trunk, weighted by learned uncertainties; gradients are accumulated over micro-batches."""

import logging
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
logger = logging.getLogger("multitask")


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 32)
        self.fc2 = nn.Linear(32, 16)

    def forward(self, x):
        return F.elu(self.fc2(F.elu(self.fc1(x))))


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.heads = nn.ModuleDict({"price": nn.Linear(16, 1), "kind": nn.Linear(16, 3)})
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        shared = self.trunk(x)
        price = self.heads["price"](shared).squeeze(1)
        kind = self.heads["kind"](shared)
        return price, kind

    def weigh(self, price_loss, kind_loss):
        precision = torch.exp(-self.log_vars)
        price_term = precision[0] * price_loss + self.log_vars[0]
        kind_term = precision[1] * kind_loss + self.log_vars[1]
        return price_term + kind_term


def micro_batches(count, size=8):
    for _ in range(count):
        x = torch.randn(size, 12)
        yield x, x[:, 0] - x[:, 1] * 0.5, x[:, 2:5].argmax(1)


def build_optimizer(model, lr=4e-3):
    return torch.optim.AdamW(
        [
            {"params": [*model.trunk.parameters(), *model.heads.parameters()], "weight_decay": 0.01},
            {"params": [model.log_vars], "weight_decay": 0.0},
        ],
        lr=lr,
    )


def train(model, optimizer, scheduler, steps, accumulate):
    optimizer.zero_grad()
    for i, (x, price, kind) in enumerate(micro_batches(steps * accumulate)):
        price_out, kind_out = model(x)
        price_loss = F.mse_loss(price_out, price)
        kind_loss = F.cross_entropy(kind_out, kind)
        loss = model.weigh(price_loss, kind_loss) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if i % 20 == 0:
            logger.info("step %d price %.4f kind %.4f", i, price_loss.item(), kind_loss.item())


def main():
    torch.manual_seed(6)
    model = MultiTask()
    optimizer = build_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + 0.1 * step))
    train(model, optimizer, scheduler, steps=20, accumulate=3)
    logger.info("weights %s", [round(w, 3) for w in model.log_vars.tolist()])


if __name__ == "__main__":
    main()
