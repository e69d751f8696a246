"""Steps without new gradients, and steps that only look like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_START = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))
model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
"""

#: rules that follow gradients from the backward call to the step
OURS = {"cleared-grad", "leaked-grad", "late-clip", "step-without-grad"}

#: the line at fault is marked
BAD = {
    "two_steps": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            opt.step()  # fault
        """,
    "scaler_and_step": """
        scaler = torch.amp.GradScaler("cpu")
        for x, y in data:
            opt.zero_grad()
            scaler.scale(F.mse_loss(model(x), y)).backward()
            scaler.step(opt)
            scaler.update()
            opt.step()  # fault
        """,
    "cleared_and_stepped_again": """
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            opt.step()
            opt.zero_grad()
            opt.step()  # fault
        """,
    "inner_loop_without_backward": """
        class Trainer:
            def fit(self):
                for x, y in data:
                    opt.zero_grad()
                    F.mse_loss(model(x), y).backward()
                    self.update()
                    self.finish()
            def update(self):
                opt.step()
            def finish(self):
                opt.step()  # fault
        Trainer().fit()
        """,
    "from_the_middle_of_the_run_on": """
        for i, (x, y) in enumerate(data * 5):
            if i < 25:
                opt.zero_grad()
                F.mse_loss(model(x), y).backward()
            opt.step()  # fault
        """,
    "all_of_the_optimizer_is_frozen": """
        opt = torch.optim.Adam(model[2].parameters())
        for index, layer in enumerate(model):
            layer.requires_grad_(index == 0)  # fault
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        """,
}

GOOD = {
    "schedule_is_warmed_up": """
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        opt.step()
        schedule.step()
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            schedule.step()
        """,
    "schedule_is_drawn": """
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(9):
            opt.step()
            schedule.step()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    "one_task_at_a_time": """
        heads = [net(3, 1), net(3, 1)]
        opts = [torch.optim.Adam(head.parameters()) for head in heads]
        for i, (x, y) in enumerate(data):
            for one in opts:
                one.zero_grad()
            F.mse_loss(heads[i % 2](x), y).backward()
            for one in opts:
                one.step()
        """,
    "closure": """
        opt = torch.optim.LBFGS(model.parameters(), max_iter=3)
        x, y = data[0]
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss
        for _ in range(5):
            opt.step(closure)
        """,
    "step_before_the_next_backward": """
        for x, y in data:
            opt.step()
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
        """,
    "gradients_given_by_hand": """
        for x, y in data:
            for p in model.parameters():
                p.grad = torch.randn_like(p)
            opt.step()
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            opt.zero_grad()
        """,
    "optimizer_around_an_optimizer": """
        class Lookahead(torch.optim.Optimizer):
            def __init__(self, inner):
                self.inner = inner
                super().__init__(inner.param_groups, {})
            def step(self, closure=None):
                return self.inner.step(closure)
        outer = Lookahead(opt)
        for x, y in data:
            outer.zero_grad()
            F.mse_loss(model(x), y).backward()
            outer.step()
        """,
    "step_within_backward": """
        opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
        def step(p):
            opts[p].step()
            opts[p].zero_grad()
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(step)
        for x, y in data:
            F.mse_loss(model(x), y).backward()
        """,
    "twice_now_and_then": """
        for i, (x, y) in enumerate(data * 5):
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            for _ in range(1 + (i % 3 == 0)):
                opt.step()
        """,
    "a_frozen_part_has_an_optimizer_of_its_own": """
        body, head = torch.optim.Adam(model[0].parameters()), torch.optim.Adam(model[2].parameters())
        model[0].requires_grad_(False)
        for x, y in data:
            head.zero_grad()
            F.mse_loss(model(x), y).backward()
            body.step()
            head.step()
        """,
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: _START + _dedent(text) for name, text in (BAD | GOOD).items()})


def _dedent(text: str) -> str:
    return "\n".join(line[8:] for line in text.splitlines())


def _alarms(report: Any) -> list[tuple[str, int]]:
    assert not report["remarks"]
    return [(found["rule"], found["line"]) for found in report["findings"] if found["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(name: str, reports: dict[str, Any]) -> None:
    lines = (_START + _dedent(BAD[name])).splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "# fault" in text)
    assert _alarms(reports[name]) == [("step-without-grad", line)]


@pytest.mark.parametrize("name", GOOD)
def test_right_code_is_silent(name: str, reports: dict[str, Any]) -> None:
    assert not {rule for rule, _ in _alarms(reports[name])} & OURS
