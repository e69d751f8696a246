"""leaked-grad: which other line it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_where_a_module_calls_its_target(check: Callable[..., Any]) -> None:
    checked = check(case("leaked-grad/bad/target_network_called_in_a_forward"))
    (finding,) = checked.findings
    called = next(number for number, line in enumerate(checked.script.splitlines(), 1) if "self.target(x)" in line)
    assert [called, "these parameters are reached through this line"] in finding["related"]
