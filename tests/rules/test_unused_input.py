"""unused-input explains the error that ends the script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import case, cases


@pytest.mark.parametrize("name", [name for name in cases("bad", "unused-input") if "only_printed" not in name])
def test_the_crash_is_explained(check: Callable[..., Any], name: str) -> None:
    checked = check(case(name.replace("/", "/bad/")))
    assert checked.explained, checked.text
