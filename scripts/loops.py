"""The training loops that scripts/bench measures: python scripts/loops.py NAME STEPS [bare|mode|anomaly].

Prints the CPU seconds of the loop alone, after some steps to warm up, on one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class Empty(TorchFunctionMode):
    """The least that any watching through a mode costs."""

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


class Unrolled(nn.Module):
    """An LSTM written as a loop over its cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(8, 32), nn.Linear(32, 1)

    def forward(self, series: Tensor) -> Tensor:
        state = torch.zeros(series.shape[0], 32), torch.zeros(series.shape[0], 32)
        for moment in series.unbind(1):
            state = self.cell(moment, state)
        return self.head(state[0])


class Block(nn.Module):
    def __init__(self, ways: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(ways, ways, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(ways) for _ in range(2))

    def forward(self, image: Tensor) -> Tensor:
        inner = F.relu(self.norms[0](self.first(image)))
        return F.relu(self.norms[1](self.second(inner)) + image)


def _mlp(width: int, batch: int) -> tuple[nn.Module, Tensor, Tensor]:
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))
    return model, torch.randn(batch, 8), torch.randn(batch, 1)


def _encoder() -> tuple[nn.Module, Tensor, Tensor]:
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return nn.TransformerEncoder(layer, 6), torch.randn(8, 64, 128), torch.randn(8, 64, 128)


def _resnet() -> tuple[nn.Module, Tensor, Tensor]:
    stem, head = nn.Conv2d(3, 16, 3, padding=1), nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return nn.Sequential(stem, *(Block(16) for _ in range(4)), head), torch.randn(8, 3, 16, 16), torch.randn(8, 10)


def _lstm() -> tuple[nn.Module, Tensor, Tensor]:
    return Unrolled(), torch.randn(8, 100, 8), torch.randn(8, 1)


LOOPS: dict[str, Callable[[], tuple[nn.Module, Tensor, Tensor]]] = {
    "mlp": lambda: _mlp(16, 8),
    "wide": lambda: _mlp(256, 64),
    "encoder": _encoder,
    "resnet": _resnet,
    "lstm": _lstm,
    "penalty": lambda: _mlp(64, 32),
}
MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "bare": nullcontext,
    "mode": Empty,
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
}


def loss_of(model: nn.Module, given: Tensor, wanted: Tensor) -> Tensor:
    return F.mse_loss(model(given), wanted)


def penalized(model: nn.Module, given: Tensor, wanted: Tensor) -> Tensor:
    """With a gradient penalty, which is differentiated twice."""
    given = given.clone().requires_grad_()
    scores = model(given)
    (slope,) = torch.autograd.grad(scores.sum(), given, create_graph=True)
    return F.mse_loss(scores, wanted) + ((slope.norm(dim=1) - 1) ** 2).mean()


def train(name: str, steps: int) -> float:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, given, wanted = LOOPS[name]()
    objective = penalized if name == "penalty" else loss_of
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    started = 0.0
    for step in range(-steps // 10, steps):
        if step == 0:
            started = time.process_time()
        optimizer.zero_grad()
        loss = objective(model, given, wanted)
        loss.backward()
        optimizer.step()
    return time.process_time() - started


if __name__ == "__main__":
    with MODES[sys.argv[3] if len(sys.argv) > 3 else "bare"]():
        seconds = train(sys.argv[1], int(sys.argv[2]))
    print(f"{seconds:.4f}")
