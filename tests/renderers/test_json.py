"""The document of a check, for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradtrace.errors import ExitCode
from gradtrace.model.finding import Ended, Finding, Level, Related, Report
from gradtrace.model.site import Site
from gradtrace.renderers.findings.json import render
from gradtrace.renderers.paper import Paper


def report(*findings: Finding, exit_code: int = ExitCode.OK) -> Report:
    return Report("train.py", findings, Ended("finished"), "2.13.0", 40, 20, exit_code, ("a remark",))


def rendered(what: Report) -> str:
    return render(what, Paper())


def test_the_whole_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finding = Finding(
        "freed-graph",
        Level.ERROR,
        "`loss` …",
        "`h = h.detach()`",
        Site(str(tmp_path / "train.py"), 31, "train_step", 4, 31, 19),
        (Related(Site(str(tmp_path / "nets" / "rnn.py"), 24, "forward"), "made here"),),
        12,
    )
    assert json.loads(rendered(report(finding, exit_code=ExitCode.FINDINGS))) == {
        "format": "gradtrace.check",
        "version": 1,
        "script": "train.py",
        "status": "findings",
        "exit_code": 1,
        "findings": [
            {
                "rule": "freed-graph",
                "level": "error",
                "message": "`loss` …",
                "help": "`h = h.detach()`",
                "path": "train.py",
                "line": 31,
                "column": 5,
                "function": "train_step",
                "occurrences": 12,
                "related": [{"path": "nets/rnn.py", "line": 24, "message": "made here"}],
            }
        ],
        "silenced": [],
        "run": {"torch": "2.13.0", "backward_calls": 40, "optimizer_steps": 20, "ended": "finished"},
        "unjudged": [],
        "remarks": ["a remark"],
    }


def test_an_unknown_column_is_null() -> None:
    finding = Finding("slow", Level.NOTE, "", "", Site("<stdin>", 1, "<module>"))
    found = json.loads(rendered(report(finding)))
    assert found["status"] == "clean"
    assert found["findings"][0]["column"] is None
    assert found["findings"][0]["path"] == "<stdin>"


@pytest.mark.parametrize(
    ("exit_code", "status"), [(0, "clean"), (1, "findings"), (3, "failed"), (4, "nothing-to-check")]
)
def test_the_status_says_the_exit_code_in_words(exit_code: int, status: str) -> None:
    found = json.loads(rendered(report(exit_code=exit_code)))
    assert (found["status"], found["exit_code"]) == (status, exit_code)


def test_any_stream_can_carry_it() -> None:
    assert rendered(report(Finding("a", Level.NOTE, "é \udc80 \x1b", "", Site("/é", 1, "f")))).isascii()


def test_places_are_relative_only_below_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    finding = Finding("slow", Level.NOTE, "", "", Site(str(tmp_path / "train.py"), 1, "<module>"))
    assert json.loads(rendered(report(finding)))["findings"][0]["path"] == (tmp_path / "train.py").as_posix()
