"""Reads of values: on a device each one waits, so that there must be few at first, and none later."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

from gradtrace.rules import Judge
from gradtrace.watcher.graph import reads
from gradtrace.watcher.watch import Watch

STEPS = 13
#: looked at again: the steps whose number is a power of two
AGAIN = {8}


def train(clear: bool, accumulated: int = 1) -> Counter[int]:
    """How often each step of a loop reads a value."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, targets = torch.randn(16, 4), torch.randint(3, (16,))
    counted: Counter[int] = Counter()
    for step in range(1, STEPS + 1):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            optimizer.zero_grad(set_to_none=clear)
            for _ in range(accumulated):
                nn.functional.cross_entropy(model(inputs), targets).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        counted[step] = sum(event.name == "aten::_local_scalar_dense" for event in profile.events())
    return counted


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As if all tensors lay on a device; gives the sizes of the reads of several values at once."""
    found: list[int] = []
    together = reads.together

    def counting(values: list[torch.Tensor]) -> list[Any]:
        if values:
            found.append(len(values))
        return together(values)

    monkeypatch.setattr(reads, "waits", lambda tensors: True)
    monkeypatch.setattr(reads, "together", counting)
    return found


def watched(clear: bool = True, accumulated: int = 1) -> Counter[int]:
    """How much more often than bare each step reads."""
    bare = train(clear, accumulated)
    with Watch(Judge().see):
        counted = train(clear, accumulated)
    return Counter({step: counted[step] - bare[step] for step in counted})


def test_a_loop_with_clipping_reads_little_at_first_and_nothing_later(batches: list[int]) -> None:
    more = watched()
    assert sum(more.values()) + len(batches) < 20
    assert {step for step, count in more.items() if step > 4 and count} <= AGAIN
    assert len(batches) <= 1


@pytest.mark.parametrize(("clear", "accumulated"), [(False, 1), (True, 4)])
def test_gradients_that_may_be_zeros_are_looked_at_together(clear: bool, accumulated: int, batches: list[int]) -> None:
    more = watched(clear, accumulated)
    assert {step for step, count in more.items() if step > 4 and count} <= AGAIN
    assert len(batches) <= (accumulated + 1) * STEPS
