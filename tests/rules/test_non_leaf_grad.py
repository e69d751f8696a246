"""Tensors that are taken for leaves, and reads of .grad that are fine."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

MLP = """
import copy
def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))
"""

BAD = {
    "scaled after it was made": """
        x = torch.randn(3, requires_grad=True) * 0.1  # <- non-leaf-grad
        for _ in range(1):
            l = (x ** 2).sum()
            l.backward()
        print(x.grad)
    """,
    "converted, then optimized": """
        w = torch.zeros(3, 2, requires_grad=True).to(torch.float64)  # <- non-leaf-grad
        o = torch.optim.SGD([w], lr=.1)
    """,
    "the input of the first layer": """
        emb, net = nn.Embedding(10,4), mlp()
        e = emb(torch.arange(5))
        net(e).sum().backward()
        sal = e.grad.abs().sum(-1) if e.grad is not None else None  # <- non-leaf-grad
    """,
    "a feature map in a module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.fc = nn.Conv2d(1, 3, 3), nn.Linear(3, 2)
            def forward(self, x):
                self.kept = F.relu(self.conv(x))
                return self.fc(self.kept.mean(dim=(2, 3)))
        net = Net()
        net(torch.randn(1, 1, 6, 6))[0, 1].backward()
        weights = net.kept.grad  # <- non-leaf-grad
    """,
    "an attack that goes on with a step of its own": """
        net = mlp()
        delta = torch.zeros(8, 4, requires_grad=True)
        for _ in range(3):
            net(torch.randn(8, 4) + delta).pow(2).mean().backward()
            delta = (delta + 0.1 * delta.grad.sign()).clamp(-1, 1)  # <- non-leaf-grad
    """,
}

GOOD = {
    "retained, probed and cleared": """
        m = mlp()
        h = m[0](torch.randn(2, 4))
        h.retain_grad()
        m[2](h).sum().backward()
        print(h.grad.shape)
        s = m[0](torch.randn(2, 4))
        m[2](s).sum().backward()
        if s.grad is not None:
            s.grad.zero_()
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        print(y.requires_grad)
        copy.deepcopy(m)
        print(m[0].weight.grad.shape)
    """,
    "gradients of parameters": """
        a, b = (mlp(4, 8), nn.Linear(8, 2))
        o = torch.optim.SGD(a.parameters(), 0.01)
        for _ in range(6):
            o.zero_grad()
            b.zero_grad()
            F.cross_entropy(b(a(torch.randn(8, 4))), torch.zeros(8).long()).backward()
            o.step()
            with torch.no_grad():
                for p in b.parameters():
                    p -= 0.01 * p.grad
    """,
    "an image is optimized": """
        net = mlp(4, 2)
        img = torch.randn(1, 4, requires_grad=True)
        o = torch.optim.LBFGS([img])
        for _ in range(4):
            def c():
                o.zero_grad()
                l = net(img).pow(2).sum()
                l.backward()
                return l
            o.step(c)
    """,
    "gradients copied by hand": """
        m = mlp(4, 1)
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(5):
            o.zero_grad()
            for t in range(2):
                f = copy.deepcopy(m)
                io = torch.optim.SGD(f.parameters(), 0.1)
                x = torch.randn(8, 4)
                for _ in range(2):
                    io.zero_grad()
                    f(x).pow(2).mean().backward()
                    io.step()
                io.zero_grad()
                f(x).pow(2).mean().backward()
                for p, q in zip(m.parameters(), f.parameters()):
                    p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
            o.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert {pair for pair in checked.by("non-leaf-grad") if pair[1] in loud(checked)} == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not [one for one in checked.alarms if one["rule"] == "non-leaf-grad"], checked.text


def test_it_explains_the_crash_over_none(check: Callable[[str], Any]) -> None:
    checked = check(MLP + dedent(BAD["an attack that goes on with a step of its own"]))
    assert "NoneType" in str(checked.exception)
    assert checked.explained


def test_the_leaf_that_was_lost_is_told_once(check: Callable[[str], Any]) -> None:
    """The graph that its conversion belongs to is freed by the first call, for the same reason."""
    script = """
        z = (torch.randn(4, 4, requires_grad=True) * 0.1).double()  # <- non-leaf-grad
        net = mlp().double()
        for _ in range(3):
            (net(z).pow(2).mean() + z.pow(2).sum()).backward()
            if z.grad is not None:
                z.data -= z.grad
                z.grad = None
    """
    checked = check(MLP + dedent(script))
    assert {(one["rule"], one["line"]) for one in checked.alarms} == checked.marked, checked.text
    assert checked.explained


def loud(checked: Any) -> set[int]:
    """Lines of findings that are more than a note."""
    return {one["line"] for one in checked.alarms if one["rule"] == "non-leaf-grad"}
