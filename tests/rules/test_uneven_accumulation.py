"""Windows that are shorter than what their losses are divided by: a note, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NET = """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(11)]
def loss_of(x, y):
    return F.mse_loss(model(x), y)
"""
NOTED = {
    "a rest at the end of each epoch": NET
    + """
accumulate = 4
for epoch in range(3):
    for i, (x, y) in enumerate(data):
        loss = loss_of(x, y)
        loss = loss / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(data):
            opt.step()  # <- uneven-accumulation
            opt.zero_grad()
""",
    "divided in the call": NET
    + """
class Trainer:
    window = 3
    def fit(self):
        for epoch in range(4):
            for i, (x, y) in enumerate(data):
                (loss_of(x, y) / self.window).backward()
                if i % self.window == self.window - 1 or i == len(data) - 1:
                    opt.step()  # <- uneven-accumulation
                    opt.zero_grad()
Trainer().fit()
""",
}
SILENT = {
    "even windows": NET
    + """
for epoch in range(3):
    for i, (x, y) in enumerate(data[:8]):
        (loss_of(x, y) / 4).backward()
        if i % 4 == 3:
            opt.step()
            opt.zero_grad()
""",
    "sums": NET
    + """
for epoch in range(3):
    for i, (x, y) in enumerate(data):
        loss_of(x, y).backward()
        if i % 4 == 3 or i == 10:
            opt.step()
            opt.zero_grad()
""",
    "the size of each window": NET
    + """
for epoch in range(3):
    for start in range(0, 11, 4):
        window = data[start:start + 4]
        for x, y in window:
            (loss_of(x, y) / len(window)).backward()
        opt.step()
        opt.zero_grad()
""",
    "the size of each window, under a name": NET
    + """
for epoch in range(3):
    for i, (x, y) in enumerate(data):
        window = min(4, len(data) - i // 4 * 4)
        loss = loss_of(x, y) / window
        loss.backward()
        if (i + 1) % 4 == 0 or i + 1 == len(data):
            opt.step()
            opt.zero_grad()
""",
}


@pytest.mark.parametrize("name", NOTED)
def test_a_short_window_is_noted(check: Callable[[str], Any], name: str) -> None:
    checked = check(NOTED[name])
    assert checked.by("uneven-accumulation") == checked.marked, checked.text
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("name", SILENT)
def test_other_windows_are_not(check: Callable[[str], Any], name: str) -> None:
    checked = check(SILENT[name])
    assert not checked.found, checked.text


def test_what_holds_of_the_run_is_shown(gradtrace: Any) -> None:
    name = gradtrace.write("""
        import torch
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            opt.zero_grad()
            net(torch.ones(3, 2)).pow(2).mean().backward()
            opt.param_groups[0]["lr"] = 0.1 * (step > 0)
            opt.step()
    """)
    done = gradtrace.here("check", "-v", name)
    assert done.status == 0
    for line in (
        "checked: losses are finite: all 6",
        "checked: optimizers step: all 1",
        "checked: steps find gradients: all 6",
        "checked: steps change parameters: 5 of 6",
        "checked: gradients are not zero: all 2",
    ):
        assert line in done.out


def test_a_note_on_the_whole_run_is_no_clean_bill(gradtrace: Any) -> None:
    name = gradtrace.write("""
        import torch
        a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
        for _ in range(12):
            opt.zero_grad()
            (a(torch.ones(3, 2)).pow(2).mean() + 0.0 * b(torch.ones(3, 2)).pow(2).mean()).backward()
            opt.step()
    """)
    done = gradtrace.here("check", name)
    assert done.status == 0
    assert "no errors or warnings: 1 note" in done.out
    assert "no gradient faults" not in done.out
