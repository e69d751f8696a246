"""Gradients with respect to tensors from which nothing was computed."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4, requires_grad=True)
"""

BAD = {
    "a clone made at the call": """
        loss = net(x).mean()
        w = net[0].weight
        (g,) = torch.autograd.grad(loss, w.clone())  # <- unused-input
    """,
    "a slice of the input": """
        out = net(x)
        for i in range(4):
            part = x[:, i]  # <- unused-input
            slope = torch.autograd.grad(out.sum(), part, retain_graph=True)[0]
    """,
    "made on the device, after the forward pass": """
        class Penalty:
            def __call__(self, critic, real):
                score = critic(real)
                real = real.to(torch.float64)  # <- unused-input
                return torch.autograd.grad(score.sum(), real, create_graph=True)[0].norm()

        Penalty()(net, x)
    """,
    "requires_grad set too late": """
        data = torch.randn(16, 4)
        out = net(data)
        data.requires_grad_(True)  # <- unused-input
        torch.autograd.grad(out.sum(), data)
    """,
    "the path from the input is cut": """
        def features(x):
            return x.detach() * 2  # <- unused-input

        out = net(features(x))
        torch.autograd.grad(out.sum(), x)
    """,
    "a layer that the loss does not depend on": """
        head = nn.Linear(4, 1)
        params = [*net.parameters(), *head.parameters()]
        grads = torch.autograd.grad(net(x).mean(), params)  # <- unused-input
    """,
    "None that is used": """
        head = nn.Linear(4, 1)
        grads = torch.autograd.grad(net(x).mean(), [net[0].weight, head.weight], allow_unused=True)  # <- unused-input
        norm = sum(g.norm() for g in grads)
    """,
}

GOOD = {
    "the parameter itself": """
        loss = net(x).mean()
        (g,) = torch.autograd.grad(loss, net[0].weight)
    """,
    "None that is filled": """
        head = nn.Linear(4, 1)
        params = [net[0].weight, head.weight]
        grads = torch.autograd.grad(net(x).mean(), params, allow_unused=True)
        grads = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, params)]
        sum(g.norm() for g in grads)
    """,
    "zeros where there is no path": """
        def slope(out, given):
            try:
                return torch.autograd.grad(out, given)[0]
            except RuntimeError:
                return torch.zeros_like(given)

        head = nn.Linear(4, 1)
        slope(net(x).mean(), head.weight)
    """,
    "a slice that the forward pass used": """
        part = x[:, :2]
        out = net(torch.cat([part, x[:, 2:]], 1))
        torch.autograd.grad(out.sum(), part)
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.found == checked.marked, checked.text
    assert checked.explained, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.found, checked.text


def test_an_error_that_is_only_printed(check: Callable[[str], Any]) -> None:
    script = """
        head = nn.Linear(4, 1)
        try:
            torch.autograd.grad(net(x).mean(), head.weight)  # <- unused-input
        except RuntimeError as error:
            print(error)
    """
    checked = check(SETTING + dedent(script))
    assert checked.found == checked.marked, checked.text
