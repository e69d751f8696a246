"""unreached-parameter: a stage that a flag switches is a note that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import case

SWITCHED = (
    "detached_from_a_named_threshold_on",
    "detached_where_a_flag_says_so",
    "no_grad_in_the_branch_of_a_flag",
    "set_grad_enabled_with_a_flag",
)


@pytest.mark.parametrize("name", SWITCHED)
def test_a_switched_stage_is_a_note(check: Callable[..., Any], name: str) -> None:
    checked = check(case(f"unreached-parameter/bad/{name}"))
    assert not checked.alarms, checked.text
    assert "on purpose" in checked.text, checked.text
