"""Each golden text belongs to a rule, and each of its entries to a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

import messages
import pytest
from casefiles import cases

from gradtrace.rules import all_rules

RULES = [rule.id for rule in all_rules()]


def test_each_file_belongs_to_a_rule() -> None:
    assert {path.stem for path in messages.FOLDER.glob("*.txt")} <= set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_each_entry_belongs_to_a_test(rule: str) -> None:
    for entry in messages.read(rule):
        file, _, rest = entry.test.partition("::")
        function, _, case = rest.partition("[")
        name = case.removesuffix("]")
        text = (Path(__file__).parent / file).read_text(encoding="utf-8")
        assert re.search(rf"def {function.rpartition('::')[2]}\b", text), entry.test
        if file == "test_cases.py":
            assert name in cases(function.removeprefix("test_")), entry.test
        else:
            assert name in text or file == "test_manuals.py", entry.test
