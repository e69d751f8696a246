"""Jobs of more than the two ranks that test_cases.py starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import case


@pytest.mark.parametrize("name", ["plain", "no_sync_accumulation", "uneven_inputs_with_join"])
def test_four_ranks(name: str, check_ranks: Callable[..., Any]) -> None:
    assert not check_ranks(case(f"ranks/good/{name}"), size=4).found
    checked = check_ranks(case("ranks/bad/through_module"), size=4)
    assert checked.by("unreduced-grad") == checked.marked
