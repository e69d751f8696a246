"""Model-agnostic meta-learning of sine waves, with second derivatives."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SineModel(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.hidden1 = nn.Linear(1, hidden)
        self.hidden2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        x = torch.tanh(self.hidden1(x))
        x = torch.tanh(self.hidden2(x))
        return self.out(x)


def functional(params, x):
    w1, b1, w2, b2, w3, b3 = params
    x = torch.tanh(F.linear(x, w1, b1))
    x = torch.tanh(F.linear(x, w2, b2))
    return F.linear(x, w3, b3)


class SineTask:
    def __init__(self):
        self.amplitude = 0.5 + 2 * torch.rand(1)
        self.phase = math.pi * torch.rand(1)

    def sample(self, count):
        x = 6 * torch.rand(count, 1) - 3
        return x, self.amplitude * torch.sin(x + self.phase)


class MAML:
    def __init__(self, model, inner_lr=0.02, meta_lr=2e-3, inner_steps=2, tasks=3):
        self.model = model
        self.weights = list(model.parameters())
        self.meta_optimizer = torch.optim.Adam(self.weights, lr=meta_lr)
        self.inner_lr, self.inner_steps, self.tasks = inner_lr, inner_steps, tasks

    def inner_loop(self, task):
        fast_weights = [w.clone() for w in self.weights]
        x, y = task.sample(10)
        for _ in range(self.inner_steps):
            loss = F.mse_loss(functional(fast_weights, x), y)
            grad = torch.autograd.grad(loss, fast_weights, create_graph=True)
            fast_weights = [w - self.inner_lr * g for w, g in zip(fast_weights, grad, strict=True)]
        x, y = task.sample(10)
        return F.mse_loss(functional(fast_weights, x), y)

    def outer_loop(self, iterations):
        for iteration in range(iterations):
            meta_loss = 0
            for _ in range(self.tasks):
                meta_loss = meta_loss + self.inner_loop(SineTask())
            meta_loss = meta_loss / self.tasks
            self.meta_optimizer.zero_grad()
            meta_loss.backward()
            self.meta_optimizer.step()
            if iteration % 5 == 0:
                print(f"{iteration}: meta loss {meta_loss.item():.4f}")


def evaluate(model, tasks=5):
    losses = []
    with torch.no_grad():
        for _ in range(tasks):
            x, y = SineTask().sample(20)
            losses.append(F.mse_loss(model(x), y).item())
    return sum(losses) / len(losses)


torch.manual_seed(10)
model = SineModel()
MAML(model).outer_loop(iterations=20)
print(f"before adaptation: {evaluate(model):.4f}")
