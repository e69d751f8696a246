"""repeated-backward, on scripts as people write them, and on events written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradtrace.model.events import Backward
from gradtrace.model.site import Site
from gradtrace.rules.repeated_backward import RepeatedBackward

BAD = {
    "twice on one loss": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.randn(8, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        loss.backward()  # <- repeated-backward
        opt.step()
    """,
    "a total and its part": """
        def train(model, opt):
            out = torch.tanh(model(torch.randn(8, 3)))
            loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            print([p.grad.norm().item() for p in model.parameters()])
            loss.backward()  # <- repeated-backward
            opt.step()

        model = nn.Linear(3, 1)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    """,
    "in the loop of a trainer": """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(3, 1)
                self.opt = torch.optim.Adam(self.model.parameters())

            def fit(self):
                for _ in range(3):
                    self.opt.zero_grad()
                    loss = self.model(torch.randn(8, 3)).pow(2).mean()
                    loss.backward(retain_graph=True)
                    if loss > 0.0:
                        loss.backward()  # <- repeated-backward
                    self.opt.step()

        Trainer().fit()
    """,
    "for each optimizer, with one clearing": """
        enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
        opts = [torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())]
        for _ in range(2):
            x = torch.randn(8, 4)
            loss = F.mse_loss(dec(torch.tanh(enc(x))), x)
            for opt in opts:
                opt.zero_grad()
            for i, opt in enumerate(opts):
                loss.backward(retain_graph=i == 0)  # <- repeated-backward
            for opt in opts:
                opt.step()
    """,
    "through autograd.backward": """
        w = torch.randn(3, requires_grad=True)
        loss = w.exp().sum()
        torch.autograd.backward([loss], retain_graph=True)
        torch.autograd.backward([loss])  # <- repeated-backward
    """,
}

GOOD = {
    "a measurement of time": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.randn(8, 3)).pow(2).mean()
        for _ in range(5):
            loss.backward(retain_graph=True)
        opt.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
    """,
    "cleared in between": """
        x = torch.randn(3, requires_grad=True)
        y = x.exp().sum()
        y.backward(retain_graph=True)
        first = x.grad.clone()
        x.grad.zero_()
        y.backward()
    """,
    "two losses of one output": """
        model = nn.Linear(3, 1)
        out = torch.tanh(model(torch.randn(8, 3)))
        out.pow(2).mean().backward(retain_graph=True)
        out.abs().mean().backward()
    """,
    "a jacobian, row by row": """
        x = torch.randn(3, requires_grad=True)
        y = torch.sin(torch.randn(3, 3) @ x)
        rows = []
        for i in range(3):
            y.backward(torch.eye(3)[i], retain_graph=True)
            rows.append(x.grad.clone())
            x.grad.zero_()
    """,
    "vectors of the caller's own, summed": """
        x = torch.randn(3, requires_grad=True)
        y = torch.sin(torch.randn(3, 3) @ x)
        for row in torch.eye(3):
            y.backward(row, retain_graph=True)
    """,
    "a gradient, then backward": """
        model = nn.Linear(3, 1)
        x = torch.randn(8, 3, requires_grad=True)
        loss = torch.tanh(model(x)).mean()
        (g,) = torch.autograd.grad(loss, x, retain_graph=True)
        loss.backward()
    """,
    "the same loss again after a step and a clearing": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(8, 3)
        for _ in range(3):
            opt.zero_grad()
            model(x).pow(2).mean().backward()
            opt.step()
    """,
    "different outputs of one call": """
        model = nn.Linear(3, 4)
        for part in torch.tanh(model(torch.randn(8, 3))).mean(0):
            part.backward(retain_graph=True)
        model.zero_grad()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_second_call_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("repeated-backward") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert "repeated-backward" not in {finding["rule"] for finding in checked.findings}, checked.text


def test_at_most_two_leaves_are_named() -> None:
    stack, earlier = (Site("/nowhere/train.py", 9, "train"),), (Site("/nowhere/train.py", 8, "train"),)
    event = Backward(2, "backward", stack, "loss", 5, False, False, 3, repeated=("a", "b", "c"), repeated_stack=earlier)
    (finding,) = RepeatedBackward().see(event)
    assert (finding.site.line, finding.related[0].site.line) == (9, 8)
    assert "`a`, `b` and 1 more" in finding.message


def test_a_call_that_repeats_nothing() -> None:
    assert not list(RepeatedBackward().see(Backward(2, "backward", (), "loss", 5, False, False, 3)))
