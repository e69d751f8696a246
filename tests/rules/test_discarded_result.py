"""Statements without an effect: detach() for nothing, a context that nothing enters, a method that is not called."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])
"""

BAD = {
    "between two lines at the top": """
        h = torch.zeros(8, 4)
        h = cell(torch.randn(8, 4), h)
        h.detach()  # <- discarded-result
        opt.zero_grad()
        head(h).square().mean().backward()
        opt.step()
    """,
    "a state that is to be detached": """
        h = torch.zeros(8, 4)
        for _ in range(4):
            h.detach()  # <- discarded-result
            h = cell(torch.randn(8, 4), h)
            opt.zero_grad()
            head(h).square().mean().backward(retain_graph=True)
    """,
    "a list of states, in a method": """
        class State:
            def __init__(self):
                self.parts = [torch.zeros(8, 4) for _ in range(2)]
            def detach(self):
                for part in self.parts:
                    part.detach()  # <- discarded-result
        state = State()
        for _ in range(4):
            state.detach()
            state.parts = [cell(torch.randn(8, 4), part) for part in state.parts]
            opt.zero_grad()
            head(sum(state.parts)).square().mean().backward(retain_graph=True)
    """,
    "gradients that are to be off": """
        def evaluate():
            torch.no_grad()  # <- discarded-result
            return head(cell(torch.randn(8, 4))).mean().item()
        for _ in range(4):
            opt.zero_grad()
            head(cell(torch.randn(8, 4))).square().mean().backward()
            opt.step()
        evaluate()
    """,
    "a mode that is not switched": """
        for _ in range(4):
            cell.train  # <- discarded-result
            opt.zero_grad()
            head(cell(torch.randn(8, 4))).square().mean().backward()
            opt.step()
    """,
}

GOOD = {
    "shown, as at a prompt": """
        for _ in range(4):
            opt.zero_grad()
            head(torch.randn(8, 4)).square().mean().backward()
            opt.step()
        head.weight.grad
        head.weight.detach()
        h = head(torch.randn(2, 4))
        h.detach()
    """,
    "results that are taken": """
        h = torch.zeros(8, 4)
        states = []
        def keep(x):
            states.append(x.detach())
        for _ in range(4):
            h = h.detach()
            h = cell(torch.randn(8, 4), h)
            keep(h)
            opt.zero_grad()
            head(h).square().mean().backward()
            opt.step()
            h.detach_()
    """,
    "contexts that are entered": """
        @torch.no_grad()
        def evaluate():
            with torch.inference_mode():
                return head(cell(torch.randn(8, 4))).mean().item()
        grad_off = torch.no_grad()
        for _ in range(4):
            opt.zero_grad()
            head(cell(torch.randn(8, 4))).square().mean().backward()
            opt.step()
            with grad_off:
                evaluate()
    """,
    "a data set's own detach, and a leaf": """
        class Source:
            def detach(self):
                return self
        source, x = Source(), torch.randn(8, 4)
        for _ in range(4):
            source.detach()
            x.detach()
            opt.zero_grad()
            head(cell(x)).square().mean().backward()
            opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.by("discarded-result") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.alarms, checked.text
