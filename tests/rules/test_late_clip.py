"""Clipping without effect, and clipping in time."""

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
    "after_the_step": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)  # fault
        """,
    "a_generator_that_the_optimizer_has_used_up": """
        parameters = model.parameters()
        opt = torch.optim.SGD(parameters, lr=0.1)
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)  # fault
            opt.step()
        """,
    "before_the_call": """
        for x, y in data:
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fault
            loss.backward()
            opt.step()
        """,
    "before_the_clearing": """
        for x, y in data:
            loss = F.mse_loss(model(x), y)
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=0.5)  # fault
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "the_other_network": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            d_opt.zero_grad()
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            nn.utils.clip_grad_norm_(gen.parameters(), 1.0)  # fault
            d_opt.step()
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            g_opt.step()
        """,
    "before_unscale": """
        scaler = torch.amp.GradScaler("cpu")
        for x, y in data:
            opt.zero_grad()
            scaler.scale(F.mse_loss(model(x), y)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fault
            scaler.step(opt)
            scaler.update()
        """,
    "clamped_by_hand_after_the_step": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            for p in model.parameters():
                p.grad.data.clamp_(-1, 1)  # fault
        """,
    "a_copy_that_is_not_trained": """
        import copy
        average = copy.deepcopy(model)
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(average.parameters(), 1.0)  # fault
            opt.step()
        """,
    "with_zeros_kept": """
        for x, y in data:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fault
            F.mse_loss(model(x), y).backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
        """,
    "after_one_in_time_elsewhere": """
        x, y = data[0]
        F.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fault
        """,
}

GOOD = {
    "an_input_where_a_parameter_has_lain": """
        import gc
        for x, y in data[:3]:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        places = {id(p) for p in model.parameters()}
        del model, opt
        gc.collect()
        others = []
        while len(others) < 1000:
            x = torch.randn(1, 3, requires_grad=True)
            if id(x) in places:
                break
            others.append(x)
        net = nn.Linear(3, 1).requires_grad_(False)
        for _ in range(6):
            net(x).sum().backward()
            x.grad.data.clamp_(-0.1, 0.1)
            x.data.add_(x.grad.data)
            x.grad.zero_()
        """,
    "put_there_by_hand": """
        copies = [p.detach().clone().requires_grad_() for p in model.parameters()]
        c_opt = torch.optim.SGD(copies, lr=0.1)
        for x, y in data:
            for p, g in zip(copies, torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters()))):
                p.grad = g
            nn.utils.clip_grad_norm_(copies, 1.0)
            c_opt.step()
        """,
    "put_there_by_hand_after_clearing": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            kept = [p.grad.clone() for p in model.parameters()]
            opt.zero_grad()
            for p, g in zip(model.parameters(), kept):
                p.grad = g
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        """,
    "in_time": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        """,
    "unscaled_first": """
        scaler = torch.amp.GradScaler("cpu")
        for x, y in data:
            opt.zero_grad()
            scaler.scale(F.mse_loss(model(x), y)).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        """,
    "only_measured": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            print(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        """,
    "each_network": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            d_opt.zero_grad()
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            nn.utils.clip_grad_norm_(disc.parameters(), 1.0)
            d_opt.step()
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            for one in (gen, disc):
                nn.utils.clip_grad_norm_(one.parameters(), 1.0)
            g_opt.step()
        """,
    "each_micro_batch": """
        for i, (x, y) in enumerate(data):
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if i % 2:
                opt.step()
                opt.zero_grad()
        """,
    "update_by_hand": """
        for x, y in data:
            model.zero_grad()
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
        """,
    "frozen_part": """
        model[0].requires_grad_(False)
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model[0].parameters(), 1.0)
            nn.utils.clip_grad_norm_(model[2].parameters(), 1.0)
            opt.step()
        """,
    "averaged_by_hand": """
        for i, (x, y) in enumerate(data):
            F.mse_loss(model(x), y).backward()
            if i % 2:
                for p in model.parameters():
                    p.grad.div_(2)
                opt.step()
                opt.zero_grad()
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
    assert _alarms(reports[name]) == [("late-clip", line)]


@pytest.mark.parametrize("name", GOOD)
def test_right_code_is_silent(name: str, reports: dict[str, Any]) -> None:
    assert not {rule for rule, _ in _alarms(reports[name])} & OURS
