"""Schedules that are stepped at the wrong time, and those that are stepped right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NET = """
from torch.optim import lr_scheduler
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(12)]
def backward(x, y):
    F.mse_loss(model(x), y).backward()
"""

BAD = {
    "once a micro-batch": NET
    + """
schedule = lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / 6))
for epoch in range(2):
    for i, (x, y) in enumerate(data):
        backward(x, y)
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
        schedule.step()  # <- scheduler-steps
""",
    "once a micro-batch, in a trainer with polynomial decay": NET
    + """
class Trainer:
    def __init__(self, accumulate):
        self.accumulate, self.done = accumulate, 0
        self.schedule = lr_scheduler.PolynomialLR(opt, total_iters=8)

    def on_batch(self, x, y):
        backward(x, y)
        self.done += 1
        if self.done % self.accumulate == 0:
            opt.step()
            opt.zero_grad()
        self.schedule.step()  # <- scheduler-steps

trainer = Trainer(3)
for epoch in range(2):
    for x, y in data:
        trainer.on_batch(x, y)
""",
    "before the optimizer": NET
    + """
schedule = lr_scheduler.StepLR(opt, 3)
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    schedule.step()  # <- scheduler-steps
    opt.step()
""",
    "never": NET
    + """
schedule = lr_scheduler.CosineAnnealingLR(opt, 10)  # <- scheduler-steps
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    print(schedule.get_last_lr())
""",
}

GOOD = {
    "one cycle for each batch": NET
    + """
schedule = lr_scheduler.OneCycleLR(opt, 0.1, total_steps=13)
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
""",
    "once an epoch": NET
    + """
schedule = lr_scheduler.MultiStepLR(opt, [1, 2])
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        backward(x, y)
        opt.step()
    schedule.step()
""",
    "with the optimizer under accumulation": NET
    + """
schedule = lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=7)
for epoch in range(2):
    for i, (x, y) in enumerate(data):
        backward(x, y)
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
            schedule.step()
""",
    "a warm-up, then a cosine": NET
    + """
first = lr_scheduler.LinearLR(opt, 0.1, total_iters=3)
then = lr_scheduler.CosineAnnealingLR(opt, 9)
schedule = lr_scheduler.SequentialLR(opt, [first, then], milestones=[3])
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
""",
    "several at once": NET
    + """
schedule = lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(opt, 0.9), lr_scheduler.ConstantLR(opt, 0.5)])
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
""",
    "a plateau": NET
    + """
schedule = lr_scheduler.ReduceLROnPlateau(opt, patience=1)
for epoch in range(2):
    for x, y in data:
        opt.zero_grad()
        backward(x, y)
        opt.step()
    schedule.step(1.0)
""",
    "told the epoch, at its start": NET
    + """
import warnings
warnings.simplefilter("ignore")
schedule = lr_scheduler.StepLR(opt, 2)
for epoch in range(6):
    schedule.step(epoch)
    for x, y in data[:3]:
        opt.zero_grad()
        backward(x, y)
        opt.step()
""",
    "caught up with a run that is resumed": NET
    + """
import warnings
warnings.simplefilter("ignore")
schedule = lr_scheduler.StepLR(opt, 2)
for _ in range(5):
    schedule.step()
for x, y in data:
    opt.zero_grad()
    backward(x, y)
    opt.step()
    schedule.step()
""",
    "averaging that begins late": NET
    + """
from torch.optim.swa_utils import SWALR, AveragedModel
averaged, swa = AveragedModel(model), SWALR(opt, swa_lr=0.05)
schedule = lr_scheduler.CosineAnnealingLR(opt, 20)
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        backward(x, y)
        opt.step()
    if epoch > 10:
        averaged.update_parameters(model)
        swa.step()
    else:
        schedule.step()
""",
    "a GradScaler that skips the first steps": NET
    + """
import warnings
warnings.simplefilter("ignore")
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
schedule = lr_scheduler.StepLR(opt, 5)
for x, y in data:
    opt.zero_grad()
    scaler.scale(100 * F.mse_loss(model(x), y)).backward()
    scaler.step(opt)
    scaler.update()
    schedule.step()
""",
    "the generator of a GAN rarely steps": NET
    + """
other = nn.Linear(3, 1)
rare = torch.optim.SGD(other.parameters(), lr=0.1)
schedules = [lr_scheduler.ExponentialLR(one, 0.99) for one in (opt, rare)]
for i, (x, y) in enumerate(data * 2):
    opt.zero_grad()
    backward(x, y)
    opt.step()
    if i % 3 == 2:
        rare.zero_grad()
        F.mse_loss(other(x), y).backward()
        rare.step()
    for schedule in schedules:
        schedule.step()
""",
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(BAD[name])
    assert checked.by("scheduler-steps") == checked.marked, checked.text
    assert {one["rule"] for one in checked.alarms} == {"scheduler-steps"}, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_schedules_that_are_stepped_right_are_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(GOOD[name])
    assert not checked.alarms, checked.text


def test_a_schedule_that_may_count_batches_is_a_note(check: Callable[[str], Any]) -> None:
    checked = check(
        NET
        + """
schedule = lr_scheduler.CosineAnnealingLR(opt, 40)
for epoch in range(2):
    for i, (x, y) in enumerate(data):
        backward(x, y)
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
        schedule.step()  # <- scheduler-steps
"""
    )
    assert checked.by("scheduler-steps") == checked.marked, checked.text
    assert not checked.alarms, checked.text
