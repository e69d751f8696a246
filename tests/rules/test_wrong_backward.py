"""Custom Functions whose backward is wrong, right, or something else on purpose; tried with --gradcheck alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

START = """
from torch.autograd import Function
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def train(loss):
    for _ in range(4):
        opt.zero_grad()
        loss(net(torch.randn(6, 4))).backward()
        opt.step()
"""

BAD = {
    "the incoming gradient is not read": """
class Gate(Function):
    @staticmethod
    def forward(ctx, x, slope=2.0):
        y = torch.sigmoid(slope * x)
        ctx.save_for_backward(y)
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return ctx.slope * y * (1 - y), None  # <- wrong-backward

train(lambda out: Gate.apply(out, 3.0).pow(2).mean())
""",
    "a factor is missing": """
class MyExp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (3 * x).exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = g * (3 * x).exp()
        return grad  # <- wrong-backward

train(lambda out: MyExp.apply(out).mean())
""",
    "the second of two inputs": """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * weight, (g * x).mean(0)  # <- wrong-backward

weight = nn.Parameter(torch.ones(3))
opt.add_param_group({"params": [weight]})
train(lambda out: Scale.apply(out, weight).pow(2).mean())
""",
    "no gradient for an input that counts": """
class Blend(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * x + y * y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g, None  # <- wrong-backward

train(lambda out: Blend.apply(out, out * 2).mean())
""",
}

GOOD = {
    "a right one": """
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

train(lambda out: Cube.apply(out).mean())
""",
    "a ReLU": """
class MyReLU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 0)

train(lambda out: MyReLU.apply(out).pow(2).mean() + MyReLU.apply(F.relu(out)).mean())
""",
    "straight through": """
class Quantize(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, g):
        return g

train(lambda out: Quantize.apply(out).pow(2).mean())
""",
    "a surrogate for a spike": """
class Spike(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + 10 * v.abs()) ** 2

train(lambda out: Spike.apply(out).mean())
""",
    "gradient reversal": """
class Reverse(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None

train(lambda out: Reverse.apply(out, 0.5).pow(2).mean())
""",
    "random inside": """
class Noisy(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask * 2

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask * 2

train(lambda out: Noisy.apply(out).pow(2).mean())
""",
    "several outputs and an index": """
class Split(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.shape, ctx.index = x.shape, index
        return x[:, index] * 2, x.sum(1)

    @staticmethod
    def backward(ctx, g, h):
        grad = h[:, None].expand(ctx.shape).clone()
        grad[:, ctx.index] += 2 * g
        return grad, None

def loss(out):
    a, b = Split.apply(out, torch.tensor([0, 2]))
    return a.pow(2).mean() + b.pow(2).mean()
train(loss)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_the_return_is_found(check: Callable[..., Any], name: str) -> None:
    checked = check(START + BAD[name], gradcheck=True)
    assert checked.by("wrong-backward") == checked.marked, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_what_is_right_or_meant_is_silent(check: Callable[..., Any], name: str) -> None:
    checked = check(START + GOOD[name], gradcheck=True)
    assert not checked.by("wrong-backward"), checked.text
    assert not checked.alarms, checked.text


def test_nothing_is_tried_unless_asked_for(check: Callable[..., Any]) -> None:
    checked = check(START + BAD["a factor is missing"])
    assert not checked.found, checked.text


def test_the_script_does_not_notice(gradtrace: Any) -> None:
    script = (
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"
        + START
        + GOOD["random inside"]
        + "print(sum(p.sum().item() for p in net.parameters()), torch.rand(1).item())\n"
    )
    name = gradtrace.write(script)
    plain, tried = gradtrace.here("check", name), gradtrace.here("check", "--gradcheck", name)
    assert plain.status == tried.status == 0
    assert plain.out == tried.out
