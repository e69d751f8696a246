"""never-stepped: the condition that its message names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_the_condition_is_named(check: Callable[..., Any]) -> None:
    checked = check(case("never-stepped/bad/a_window_longer_than_the_epoch_in_a_function"))
    (finding,) = [one for one in checked.findings if one["rule"] == "never-stepped"]
    assert "`batch % self.accumulate == 0` was never true" in finding["message"]
    assert any("this step never ran" in text for _, text in finding["related"])
