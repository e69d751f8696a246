"""A backward call on many elements without a gradient is told at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "nonscalar-backward"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "vector loss": """\
m = nn.Linear(4, 1)
loss = F.mse_loss(m(torch.randn(6, 4)), torch.randn(6, 1), reduction="none")
loss.backward()  # here
""",
    "in a helper": """\
def step(loss, opt):
    opt.zero_grad()
    loss.backward()  # here
    opt.step()
m = nn.Linear(4, 1)
step(m(torch.randn(6, 4)).pow(2).squeeze(1), torch.optim.SGD(m.parameters(), 0.1))
""",
    "grad of outputs": """\
m = nn.Linear(4, 1)
x = torch.randn(6, 4, requires_grad=True)
d = m(x)
g, = torch.autograd.grad(d, x, create_graph=True)  # here
""",
    "torch autograd backward of several": """\
m = nn.Linear(4, 2)
out = m(torch.randn(6, 4))
torch.autograd.backward([out.mean(), out[:, 0]])  # here
""",
    "a list of losses": """\
m = nn.Linear(4, 1)
losses = [m(torch.randn(4)) for _ in range(3)]
torch.stack(losses).backward()  # here
""",
}

GOOD = {
    "scalars and gradients of the right shape": """\
m = nn.Linear(4, 3)
x = torch.randn(6, 4, requires_grad=True)
m(x).mean().backward()
m(x).backward(torch.ones(6, 3))
m(x).mean().reshape(1, 1).backward()
g, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
(g.norm(dim=1) - 1).pow(2).mean().backward()
""",
    "one element is as good as a scalar": """\
m = nn.Linear(4, 1)
m(torch.randn(4)).backward()
m(torch.randn(1, 4)).backward()
""",
    "a gradient for each of several roots": """\
m = nn.Linear(4, 2)
out = m(torch.randn(6, 4))
torch.autograd.backward([out.mean(), out], [None, torch.ones(6, 2)])
""",
    "an error of the user's own": """\
m = nn.Linear(4, 3)
try:
    raise RuntimeError("grad can be implicitly created only for scalar outputs")
except RuntimeError:
    m(torch.randn(2, 4)).sum().backward()
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: IMPORTS + text for name, text in (BAD | GOOD).items()})


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(reports: dict[str, Any], name: str) -> None:
    lines = (IMPORTS + BAD[name]).splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert found(reports[name]) == [(RULE, marked)]
    assert reports[name]["exit_code"] == 1
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []
    assert reports[name]["exit_code"] == 0
    assert not reports[name]["remarks"]
