"""cleared-grad: which other line it names, and what it says to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_where_the_function_that_clears_is_called(check: Callable[..., Any]) -> None:
    checked = check(case("cleared-grad/bad/cleared_by_a_probe_of_another_function"))
    (finding,) = checked.findings
    called = checked.script.splitlines().index("    probe(x, y)") + 1
    assert [called, "called from here"] in finding["related"]


def test_a_step_that_comes_first_is_to_be_moved(check: Callable[..., Any]) -> None:
    (finding,) = check(case("cleared-grad/bad/step_before_backward")).findings
    assert finding["help"] == "move `opt.step()` below `loss.backward()`"
