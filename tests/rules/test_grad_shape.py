"""A gradient of the wrong shape is told where it is given, assigned or returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "grad-shape"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "ones of the batch": """\
m = nn.Linear(4, 3)
out = m(torch.randn(6, 4))
out.backward(torch.ones(6))  # here
""",
    "gradient for a mean": """\
m = nn.Linear(4, 3)
out = m(torch.randn(6, 4)).mean()
out.backward(gradient=torch.ones(6, 3))  # here
""",
    "hook": """\
m, head = nn.Linear(4, 3), nn.Linear(3, 1)
h = m(torch.randn(6, 4))
h.register_hook(lambda g: g.mean(0))  # here
head(h).sum().backward()
""",
    "hook of a function": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(3, 1)
    def scaled(self, grad):
        norm = grad.norm(dim=1)
        return norm / norm.max()  # here
    def forward(self, x):
        h = self.a(x)
        h.register_hook(self.scaled)
        return self.b(h)
N()(torch.randn(6, 4)).sum().backward()
""",
    "grad outputs": """\
m = nn.Linear(4, 1)
x = torch.randn(6, 4, requires_grad=True)
d = m(x)
g = torch.autograd.grad(d, x, grad_outputs=torch.ones(6), create_graph=True)[0]  # here
""",
    "transposed weight": """\
class Mult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gw = x.t() @ g
        return g @ w, gw  # here
w = nn.Parameter(torch.randn(3, 4))
Mult.apply(torch.randn(5, 4), w).sum().backward()
""",
    "two returns": """\
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(1)
    @staticmethod
    def backward(ctx, g):  # here
        if not ctx.needs_input_grad[0]:
            return None
        return g.unsqueeze(0)
x = torch.randn(5, 4, requires_grad=True)
Sum.apply(x).sum().backward()
""",
    "too few": """\
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor  # here
x = torch.randn(5, 4, requires_grad=True)
Scale.apply(x, 3.0).sum().backward()
""",
    "assigned by hand": """\
m = nn.Linear(4, 3)
m(torch.randn(2, 4)).sum().backward()
m.weight.grad = m.weight.grad.t()  # here
""",
    "hook that is an object": """\
class Pool:
    def __call__(self, g):
        return g.mean(0)  # here
m, head = nn.Linear(4, 3), nn.Linear(3, 1)
h = m(torch.randn(6, 4))
h.register_hook(Pool())
head(h).sum().backward()
""",
}

GOOD = {
    "hooks": """\
m = nn.Linear(4, 3)
h = m(torch.randn(6, 4))
h.register_hook(lambda g: g * 2)
h.register_hook(lambda g: None)
h.sum().backward()
""",
    "scalars and gradients of the right shape": """\
m = nn.Linear(4, 3)
x = torch.randn(6, 4, requires_grad=True)
m(x).mean().backward()
m(x).backward(torch.ones(6, 3))
m(x).mean().reshape(1, 1).backward()
g, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
(g.norm(dim=1) - 1).pow(2).mean().backward()
""",
    "a custom function that broadcasts": """\
class Bias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b
    @staticmethod
    def backward(ctx, g):
        return g, g
b = nn.Parameter(torch.zeros(3))
Bias.apply(torch.randn(5, 3), b).sum().backward()
""",
    "none for what needs no gradient": """\
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None
Scale.apply(nn.Parameter(torch.randn(5, 4)), 3.0).sum().backward()
""",
    "gradients assigned in the right shape": """\
m = nn.Linear(4, 3)
m(torch.randn(2, 4)).sum().backward()
m.weight.grad = torch.zeros_like(m.weight)
m.bias.grad = None
""",
    "an error of the user's own": """\
m = nn.Linear(4, 3)
try:
    raise RuntimeError("Mismatch in shape: grad_output[0]")
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
