"""Comments and baselines: what they silence, what they do not, and what is said about them."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from gradtrace.model.finding import Finding, Level, Related
from gradtrace.model.site import Site
from gradtrace.report import suppressions

if TYPE_CHECKING:
    from tests.conftest import Runner

KNOWN = {"stale-grad", "no-graph", "freed-graph"}
#: line 7 is found; {here} is its end
TRAIN = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    loss = weight.square().sum()
    loss.backward(){here}
    optimizer.step()
"""
CRASH = """
import torch
loss = torch.ones(2, requires_grad=True).exp().sum()
loss.backward()  # gradtrace: ignore[freed-graph]
loss.backward()
"""


@pytest.fixture(autouse=True)
def _forget() -> Iterable[None]:
    suppressions.ignores.cache_clear()
    linecache.clearcache()
    yield
    suppressions.ignores.cache_clear()


def applied(tmp_path: Path, text: str, *findings: Finding, judged: Iterable[str] = KNOWN) -> Any:
    path = tmp_path / "train.py"
    path.write_text(dedent(text))
    return suppressions.apply(findings, [str(path)], set(judged), KNOWN)


def finding(tmp_path: Path, line: int, *related: int, rule: str = "stale-grad", end: int | None = None) -> Finding:
    def site(line: int) -> Site:
        return Site(str(tmp_path / "train.py"), line, "f", 0, end or line, 1)

    return Finding(rule, Level.ERROR, "m", "h", site(line), tuple(Related(site(one), "r") for one in related))


class TestComment:
    @pytest.mark.parametrize(
        ("comment", "reason"),
        [
            ("# gradtrace: ignore[stale-grad]", ""),
            ("# gradtrace: ignore[stale-grad] -- momentum by hand", "momentum by hand"),
            ("# gradtrace: ignore[stale-grad]: momentum by hand", "momentum by hand"),
            ("#gradtrace:ignore[ no-graph , stale-grad ]--why", "why"),
            ("# noqa: E501  # gradtrace: ignore[stale-grad] -- why", "why"),
            ("# gradtrace: ignore[stale-grad] # type: ignore", ""),
        ],
    )
    def test_silences_its_line(self, comment: str, reason: str, tmp_path: Path) -> None:
        kept, (silenced,), _ = applied(tmp_path, f"x = 1  {comment}\n", found := finding(tmp_path, 1))
        assert (kept, silenced.finding, silenced.how, silenced.reason) == ([], found, "comment", reason)

    @pytest.mark.parametrize(
        "text",
        [
            "x = '# gradtrace: ignore[stale-grad]'\n",
            "x = 1  # gradtrace: ignore[no-graph]\n",
            "x = 1  # gradtrace: ignore\n",
            "x = 1  # gradtrace: ignore stale-grad\n",
            "x = 1\n# gradtrace: ignore[stale-grad]\n",
            'x = """\n# gradtrace: ignore[stale-grad]\n"""\n',
            "x = (  # gradtrace: ignore[stale-grad\n",
        ],
    )
    def test_that_is_none_or_says_something_else_silences_nothing(self, text: str, tmp_path: Path) -> None:
        kept, silenced, _ = applied(tmp_path, text, found := finding(tmp_path, 1))
        assert (kept, silenced) == ([found], [])

    def test_covers_the_related_lines_and_the_lines_of_its_statement(self, tmp_path: Path) -> None:
        text = """\
            a = 1  # gradtrace: ignore[stale-grad]
            b = f(
                x,
                y,
            )  # gradtrace: ignore[no-graph]
            c = g(
                x,  # gradtrace: ignore[freed-graph]
                y,
            )
        """
        kept, silenced, told = applied(
            tmp_path,
            text,
            finding(tmp_path, 9, 1),
            finding(tmp_path, 3, rule="no-graph"),
            finding(tmp_path, 6, rule="freed-graph", end=9),
            wrong := finding(tmp_path, 8, rule="freed-graph"),
        )
        assert kept == [wrong]
        assert len(silenced) == 3
        assert told == []

    @pytest.mark.parametrize(
        ("text", "message", "mend"),
        [
            ("x = 1  # gradtrace: ignore", "it names no rule", "name the one"),
            ("x = 1  # gradtrace: ignore[]", "it names no rule", "name the one"),
            ("x = 1  # gradtrace: ignore[stale]", "no rule is called 'stale'", "did you mean stale-grad?"),
            ("x = 1  # gradtrace: ignore[no-graph]", "no-graph found nothing here", "remove it"),
        ],
    )
    def test_that_silences_nothing_is_told(self, text: str, message: str, mend: str, tmp_path: Path) -> None:
        _, _, (told,) = applied(tmp_path, f"\n{text}\n", finding(tmp_path, 2))
        assert (told.rule, told.level, told.site.line, told.site.column) == ("unused-ignore", Level.NOTE, 2, 7)
        assert message in told.message
        assert mend in told.help

    def test_for_a_rule_that_did_not_judge_is_left_alone(self, tmp_path: Path) -> None:
        assert applied(tmp_path, "x = 1  # gradtrace: ignore[no-graph]\n", judged=["stale-grad"]) == ([], [], [])

    def test_on_the_command_line(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", gradtrace.write(TRAIN.format(here="  # gradtrace: ignore[stale-grad] -- why")))
        assert done.out.startswith("no gradient faults: 1 silenced; 4 backward calls")
        assert done.status == 0
        document = gradtrace.document("train.py")
        assert document["findings"] == []
        (silenced,) = document["silenced"]
        assert (silenced["rule"], silenced["line"]) == ("stale-grad", 7)
        assert (silenced["silenced_by"], silenced["reason"]) == ("comment", "why")

    @pytest.mark.parametrize(
        ("options", "ending", "notes"),
        [
            ((), "", 1),
            (("--fail-on", "note"), "", 1),
            (("--ignore", "unused-ignore"), "", 0),
            (("--select", "no-graph"), "", 0),
            (("--steps", "2"), "", 0),
            ((), "raise ValueError", 0),
        ],
    )
    def test_that_silences_nothing_is_a_note(
        self, options: tuple[str, ...], ending: str, notes: int, gradtrace: Runner
    ) -> None:
        text = TRAIN.format(here="  # gradtrace: ignore[stale-grad]") + "x = 1  # gradtrace: ignore[no-graph]\n"
        done = gradtrace.here("check", *options, gradtrace.write(text + ending))
        assert done.out.count("note[unused-ignore]: this comment silences nothing: no-graph found nothing") == notes
        assert done.status == (3 if ending else 1 if "note" in options else 0)

    def test_in_another_file_counts_too(self, gradtrace: Runner) -> None:
        gradtrace.write("x = 1  # gradtrace: ignore[no-graph]\n", "helper_of_train.py")
        gradtrace.write("import helper_of_train\n" + TRAIN.format(here="  # gradtrace: ignore[stale-grad]"))
        done = gradtrace.alone("check", "train.py")
        assert "--> helper_of_train.py:1:8\n" in done.out
        assert done.status == 0

    def test_does_not_make_a_crash_a_success(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", gradtrace.write(CRASH))
        assert "the script failed for another reason: 1 silenced; 2 backward calls" in done.out
        assert done.status == 3


class TestBaseline:
    def test_knows_what_was_found_before_though_the_lines_moved(self, gradtrace: Runner) -> None:
        text = TRAIN.format(here="")
        done = gradtrace.here("check", "--baseline", "old.json", "--write-baseline", gradtrace.write(text))
        assert done.out.startswith("no gradient faults: 1 silenced; ")
        assert done.status == 0
        written = json.loads((gradtrace.directory / "old.json").read_text())
        assert written == {
            "format": "gradtrace.baseline",
            "version": 1,
            "findings": [
                {"rule": "stale-grad", "path": "train.py", "function": "<module>", "source": "loss.backward()"}
            ],
        }
        gradtrace.write("\n\n\n" + text.replace("    ", "  "))
        linecache.clearcache()
        assert gradtrace.here("check", "--baseline", "old.json", "train.py").status == 0
        (silenced,) = gradtrace.document("--baseline", "old.json", "train.py")["silenced"]
        assert (silenced["silenced_by"], silenced["reason"]) == ("baseline", "")

    def test_does_not_know_what_is_new(self, gradtrace: Runner) -> None:
        text = TRAIN.format(here="")
        gradtrace.here("check", "--baseline", "old.json", "--write-baseline", gradtrace.write(text))
        for other in (text.replace("loss.backward()", "loss.backward(None)"), text + text.replace("loss", "loss ")):
            linecache.clearcache()
            done = gradtrace.here("check", "--baseline", "old.json", gradtrace.write(other))
            assert done.out.count("error[stale-grad]") == 1
            assert done.status == 1

    def test_is_found_from_any_directory(self, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        (gradtrace.directory / "sub").mkdir()
        script = gradtrace.write(TRAIN.format(here=""), "sub/train.py")
        (gradtrace.directory / "pyproject.toml").write_text("[tool.gradtrace]\nbaseline = 'old.json'")
        gradtrace.here("check", "--write-baseline", script)
        monkeypatch.chdir(gradtrace.directory / "sub")
        assert gradtrace.here("check", "train.py").status == 0

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "cannot read the baseline old.json: No such file or directory; make it with --write-baseline"),
            ("", "old.json is damaged: it is not"),
            ("{", "old.json is damaged: it is not"),
            ("[]", "old.json is not a gradtrace baseline"),
            ('{"findings": []}', "old.json is not a gradtrace baseline"),
            ('{"format": "gradtrace.baseline", "version": 2, "findings": []}', "old.json is not a gradtrace baseline"),
            ('{"format": "gradtrace.baseline", "version": 1, "findings": [{}]}', "old.json is damaged: findings"),
            ('{"format": "gradtrace.baseline", "version": 1, "findings": 1}', "old.json is damaged: findings"),
            ("\x80", "old.json is damaged: it is not"),
        ],
    )
    def test_that_cannot_be_read_is_told_before_the_run(
        self, content: str | None, message: str, gradtrace: Runner
    ) -> None:
        if content is not None:
            (gradtrace.directory / "old.json").write_text(content, encoding="latin-1")
        done = gradtrace.here("check", "--baseline", "old.json", gradtrace.write("print('never reached')"))
        assert done.err.startswith(f"gradtrace: {message}")
        assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--write-baseline"], "--write-baseline: where to? name a file with --baseline"),
            (["--write-baseline", "--baseline", "missing/old.json"], "cannot write "),
        ],
    )
    def test_that_cannot_be_written_is_told_before_the_run(
        self, options: list[str], message: str, gradtrace: Runner
    ) -> None:
        done = gradtrace.here("check", *options, gradtrace.write("print('never reached')"))
        assert done.err.startswith(f"gradtrace: {message}")
        assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)
