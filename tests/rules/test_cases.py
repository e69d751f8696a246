"""Each script in tests/cases: what its marks ask for is found, and nothing else. tests/cases/README.md has the marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import FOLDER, RANKS, case, cases

from gradtrace.errors import ExitCode

Check = Callable[[str], Any]
#: topics whose scripts are checked with --gradcheck
GRADCHECK = {"wrong-backward"}
#: scripts that call torch.func alone, or only step a schedule: nothing in them can be checked
WITHOUT_BACKWARD = {"unneeded-retain/torch_func", "unused-loss/schedules_that_are_tried_out"}


@pytest.fixture
def check_case(request: pytest.FixtureRequest) -> Check:
    """Checks a script as its topic wants it: as a job of two ranks, or with --gradcheck."""

    def check(name: str) -> Any:
        topic = name.partition("/")[0]
        if topic == RANKS:
            return request.getfixturevalue("check_ranks")(case(name))
        return request.getfixturevalue("check")(case(name), gradcheck=topic in GRADCHECK)

    return check


@pytest.mark.parametrize("name", cases("bad"))
def test_bad(name: str, check_case: Check) -> None:
    checked = check_case(name.replace("/", "/bad/"))
    assert checked.marked, "no line is marked: a bad script has one that must be found"
    assert not checked.missing, checked.text
    assert not checked.unmarked, checked.text
    assert len(checked.found) == len(checked.findings), checked.text
    if not name.startswith(f"{RANKS}/"):  # a rank that waits for another may fail first
        assert checked.exit_code == (ExitCode.FINDINGS if checked.alarms else ExitCode.OK), checked.text


@pytest.mark.parametrize("name", cases("good"))
def test_good(name: str, check_case: Check) -> None:
    checked = check_case(name.replace("/", "/good/"))
    assert not checked.marked, "a line is marked: in a good script nothing must be found"
    assert not checked.unmarked, checked.text
    if not checked.alarms:
        assert checked.exit_code == (ExitCode.NOTHING_TO_CHECK if name in WITHOUT_BACKWARD else ExitCode.OK)


def test_every_script_is_bad_or_good() -> None:
    assert len(cases("bad")) + len(cases("good")) == len(list(FOLDER.rglob("*.py")))
