"""`gradtrace rules`: the list, the manuals, and the same for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gradtrace.model.manual import Manual, read
from gradtrace.rules import manuals

if TYPE_CHECKING:
    from tests.conftest import Runner


def test_a_line_for_each_rule(gradtrace: Runner) -> None:
    done = gradtrace.here("rules")
    assert [line.split(maxsplit=2) for line in done.out.splitlines()] == [
        [manual.rule, str(manual.level), manual.summary] for manual in manuals()
    ]


@pytest.mark.parametrize("manual", manuals(), ids=lambda manual: manual.rule)
def test_the_manual_of_one(manual: Manual, gradtrace: Runner) -> None:
    done = gradtrace.here("rules", manual.rule)
    told = " ".join(done.out.split())
    for part in (manual.rule, str(manual.level), manual.summary, manual.why, manual.bad, manual.good, manual.notes):
        assert " ".join(part.split()) in told
    needs = manual.needs.calls or manual.needs.steps
    assert (f"To judge, it must see {manual.needs}." if needs else "It judges any run.") in told
    assert f"# gradtrace: ignore[{manual.rule}] -- why" in told
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_all_or_one_for_programs(gradtrace: Runner) -> None:
    document = json.loads(gradtrace.here("rules", "--format", "json").out)
    assert (document["format"], document["version"]) == ("gradtrace.rules", 1)
    assert [row["rule"] for row in document["rules"]] == [manual.rule for manual in manuals()]
    (row,) = json.loads(gradtrace.here("rules", "stale-grad", "--format", "json").out)["rules"]
    assert set(row) == {"rule", "level", "summary", "why", "bad", "good", "notes", "needs", "silence"}
    assert row["needs"] == {"calls": 2, "steps": 2, "abilities": []}
    assert row["level"] == "error"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stale-grd"], "no rule is called 'stale-grd'; did you mean stale-grad?"),
        (["stale"], "no rule is called 'stale'; did you mean stale-grad?"),
        (["quux"], "no rule is called 'quux'; there are attached-target, "),
        (["--format", "yaml"], "no format of rules is called 'yaml'; there are json, text"),
    ],
)
def test_what_does_not_exist_is_told(arguments: list[str], message: str, gradtrace: Runner) -> None:
    done = gradtrace.here("rules", *arguments)
    assert done.err.startswith(f"gradtrace: {message}")
    assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)


def test_version(gradtrace: Runner) -> None:
    assert gradtrace.here("--version").out.startswith("gradtrace 0.")


def test_a_manual_without_its_parts_is_empty_there() -> None:
    manual = read("some-rule", manuals()[0].level, "It finds\nthis.\n\nBad\n    x = 1\n\n    y = 2\n")
    assert (manual.summary, manual.why, manual.bad, manual.good) == ("It finds this.", "", "x = 1\n\ny = 2", "")
