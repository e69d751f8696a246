"""non-leaf-grad explains the errors that follow from a tensor that is taken for a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_it_explains_the_crash_over_none(check: Callable[..., Any]) -> None:
    checked = check(case("non-leaf-grad/bad/an_attack_that_goes_on_with_a_step_of_its_own"))
    assert "NoneType" in str(checked.exception)
    assert checked.explained


def test_it_explains_the_error_of_the_graph_that_a_conversion_belongs_to(check: Callable[..., Any]) -> None:
    """The graph is freed by the first call, for the same reason: the lost leaf alone is reported."""
    assert check(case("non-leaf-grad/bad/a_leaf_lost_by_a_conversion_whose_graph_is_freed")).explained
