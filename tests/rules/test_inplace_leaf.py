"""A write that autograd refuses is told at its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "inplace-leaf"

#: the line to be blamed is marked
BAD = {
    "a parameter by index": """\
import torch
from torch import nn

model = nn.Linear(3, 3)
model.weight[0] = 0.0  # here
""",
    "a parameter by a method": """\
import torch
from torch import nn

def start(layer):
    nn.init.normal_(layer.weight)
    layer.bias.fill_(0.1)  # here

start(nn.Linear(3, 3))
""",
    "a view of a parameter": """\
import torch
from torch import nn

conv = nn.Conv2d(3, 12, 1)
bias = conv.bias.view(3, -1)
bias[:, 1] += 2.0  # here
""",
    "an update by hand": """\
import torch

w = torch.randn(3, requires_grad=True)
for _ in range(3):
    loss = (w * 2).pow(2).sum()
    loss.backward()
    w -= 0.1 * w.grad  # here
    w.grad.zero_()
""",
    "an inplace module on the input": """\
import torch
from torch import nn

x = torch.zeros(4, requires_grad=True)
act = nn.ReLU(inplace=True)
y = act(x)  # here
""",
    "one of several views": """\
import torch

h = torch.randn(4, 6, requires_grad=True) * 2
left, right = h.chunk(2, 1)
left += 1  # here
(left * right).sum().backward()
""",
    "a function of torch": """\
import torch

w = torch.randn(3, requires_grad=True)
torch.clamp_(w, -1, 1)  # here
""",
}

GOOD = {
    "under no_grad": """\
import torch
from torch import nn

model = nn.Linear(3, 3)
with torch.no_grad():
    model.weight[0] = 0.0
    model.bias.fill_(0.1)
for _ in range(3):
    model(torch.randn(2, 3)).pow(2).mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
""",
    "through data and detach, and by nn.init": """\
import torch
from torch import nn

model = nn.Linear(3, 3)
nn.init.zeros_(model.bias)
model.weight.data.mul_(0.5)
model.bias.detach().add_(1)
model(torch.randn(2, 3)).mean().backward()
""",
    "on a copy": """\
import torch

w = torch.randn(4, 3, requires_grad=True)
x = w.clone()
x[0] = 0.0
x.view(-1)[3] += 1
x.sum().backward()
""",
    "an error of another kind that is caught": """\
import torch

w = torch.randn(4, requires_grad=True)
try:
    w.detach().add_(torch.ones(3))
except RuntimeError:
    pass
w.sum().backward()
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all(BAD | GOOD)


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(reports: dict[str, Any], name: str) -> None:
    lines = BAD[name].splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert found(reports[name]) == [(RULE, marked)]
    assert reports[name]["exit_code"] == 1
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []
    assert reports[name]["exit_code"] == 0
    assert not reports[name]["remarks"]
