"""Steps on gradients that a GradScaler has scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

BAD = {
    "a plain step": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 3)).pow(2).mean()
            scaler.scale(loss).backward()
            optimizer.step()  # <- scaled-grad
    """,
    "the second of two optimizers, in a class": """
        class Trainer:
            def __init__(self):
                self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 1)
                self.body_opt = torch.optim.Adam(self.body.parameters())
                self.head_opt = torch.optim.Adam(self.head.parameters())
                self.scaler = torch.amp.GradScaler("cpu", init_scale=128.0)

            def step(self, x):
                self.body_opt.zero_grad()
                self.head_opt.zero_grad()
                self.scaler.scale(self.head(self.body(x)).pow(2).mean()).backward()
                self.scaler.step(self.body_opt)
                self.head_opt.step()  # <- scaled-grad
                self.scaler.update()

        trainer = Trainer()
        for _ in range(3):
            trainer.step(torch.randn(8, 3))
    """,
}

GOOD = {
    "the scaler makes the step": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    "the scale is removed first": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            scaler.unscale_(optimizer)
            optimizer.step()
            scaler.update()
    """,
    "the scale is divided out by hand": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            for p in model.parameters():
                p.grad.div_(scaler.get_scale())
            optimizer.step()
    """,
    "a scaler that is off": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            optimizer.step()
    """,
    "a loss that is not scaled, beside one that is": """
        model, other = nn.Linear(3, 1), nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        plain = torch.optim.SGD(other.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(4):
            optimizer.zero_grad()
            plain.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            (other(torch.randn(8, 3)).pow(2).mean() * 2).backward()
            scaler.step(optimizer)
            plain.step()
            scaler.update()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_step_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("scaled-grad") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert not checked.alarms, checked.text
