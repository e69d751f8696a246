"""What people read of a check: hand-written reports, printed to the letter."""

from __future__ import annotations

import io
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from gradtrace.errors import ExitCode
from gradtrace.model.finding import Ended, Finding, Level, Related, Report
from gradtrace.model.site import Site
from gradtrace.renderers.findings import text

SOURCE = """\
import torch

def train(cell, chunks, h):
    for x in chunks:
        h = cell(x, h)
        loss = h.pow(2).mean()
        loss.backward()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source file, in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return path


def source(script: Path, line: str, **site: Any) -> Site:
    """A site on the only line of a script that says just this."""
    script.write_text(line + "\n", encoding="utf-8")
    return Site(str(script), 1, "<module>", **site)


def finding(site: Site, *related: Related, message: str = "something happened", mend: str = "mend it") -> Finding:
    return Finding("some-rule", Level.ERROR, message, mend, site, related)


def report(*findings: Finding, exit_code: int = ExitCode.FINDINGS, how: str = "finished", **more: Any) -> Report:
    return Report("train.py", findings, Ended(how), "2.13.0", 40, 20, exit_code, **more)


def printed(what: Report, width: int = 100, encoding: str = "utf-8", **console: Any) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding, newline="")
    text.draw(what, Console(file=stream, width=width, **console))
    stream.flush()
    return raw.getvalue().decode(encoding)


def marked(site: Site, **options: Any) -> str:
    """The part of the printed source line that stands above the carets."""
    lines = printed(report(finding(site)), **options).splitlines()
    carets = next(number for number, line in enumerate(lines) if line.strip(" │^") == "" and "^" in line)
    start, end = lines[carets].index("^"), len(lines[carets])
    edges = [cell_len(lines[carets - 1][:index]) for index in range(len(lines[carets - 1]) + 1)]
    return lines[carets - 1][edges.index(start) : edges.index(end)]


def test_a_finding_shows_what_happened_where_why_and_what_to_type(script: Path) -> None:
    found = Finding(
        "freed-graph",
        Level.ERROR,
        "`loss` goes backward through a graph that was freed",
        "`h = h.detach()` before the next chunk",
        Site(str(script), 7, "train", 8, 7, 23),
        (
            Related(Site(str(script), 5, "train", 12, 5, 22), "the graph was made here"),
            Related(Site("/gone/lib.py", 88, "helper", 4), "and here"),
        ),
        occurrences=12,
    )
    slow = Finding("slow", Level.WARNING, "the graph is kept", "let it go", Site(str(script), 6, "train"))
    assert printed(report(found, slow)) == dedent("""\
        error[freed-graph]: `loss` goes backward through a graph that was freed
          --> train.py:7:9 in train (12 times)
           │
         7 │         loss.backward()
           │         ^^^^^^^^^^^^^^^
          ::: train.py:5:13 in train
           │
         5 │         h = cell(x, h)
           │             ---------- the graph was made here
          ::: /gone/lib.py:88:5 in helper
           │ and here
        help: `h = h.detach()` before the next chunk

        warning[slow]: the graph is kept
         --> train.py:6 in train
          │
        6 │         loss = h.pow(2).mean()
          │         ^^^^^^^^^^^^^^^^^^^^^^
        help: let it go

        1 error, 1 warning; 40 backward calls, 20 optimizer steps, torch 2.13.0; the script finished
    """)


def test_everything_fits_a_narrow_terminal_and_hangs_below_its_beginning(script: Path) -> None:
    site = source(script, "loss = criterion(model(inputs), targets)", column=7, end_line=1, end_column=16)
    related = Related(site, "this is where all of it began, long ago")
    what = report(
        finding(site, related, message="one two three four five six seven", mend="eight nine ten eleven twelve")
    )
    assert printed(what, width=36) == dedent("""\
        error[some-rule]: one two three four
               five six seven
         --> train.py:1:8
          │
        1 │ loss = criterion(model(inputs),…
          │        ^^^^^^^^^
         ::: train.py:1:8
          │
        1 │ loss = criterion(model(inputs),…
          │        ---------
          │        this is where all of it
          │        began, long ago
        help: eight nine ten eleven twelve

        1 error; 40 backward calls, 20
          optimizer steps, torch 2.13.0; the
          script finished
    """)


FACTS = "40 backward calls, 20 optimizer steps, torch 2.13.0"


@pytest.mark.parametrize(
    ("exit_code", "how", "verdict", "ended"),
    [
        (ExitCode.OK, "finished", f"no gradient faults: {FACTS}", "finished"),
        (ExitCode.OK, "stopped", f"no gradient faults: {FACTS}", "was stopped early"),
        (ExitCode.OK, "exit", f"no gradient faults: {FACTS}", "exited with status 0"),
        (
            ExitCode.NOTHING_TO_CHECK,
            "finished",
            "nothing to check: no backward or autograd.grad call was seen",
            "finished",
        ),
    ],
)
def test_without_findings_one_line_says_why(exit_code: int, how: str, verdict: str, ended: str) -> None:
    assert printed(report(exit_code=exit_code, how=how), width=200) == f"{verdict}; the script {ended}\n"


@pytest.mark.parametrize(("how", "ended"), [("interrupted", "interrupted"), ("killed", "killed by a signal")])
def test_a_script_that_was_ended_from_outside_did_not_fail_by_itself(how: str, ended: str) -> None:
    told = printed(report(exit_code=ExitCode.SCRIPT_FAILED, how=how), width=200)
    assert told == f"the script was {ended}: no gradient faults until then; {FACTS}\n"


def test_an_exception_of_the_script_is_named_by_its_first_line() -> None:
    ended = Ended("exception", 1, "ValueError: bad\nand much more")
    out = printed(Report("train.py", (), ended, "2.13.0", 1, 1, ExitCode.SCRIPT_FAILED), width=200)
    assert out.endswith(
        "1 optimizer step, torch 2.13.0; the script ended with ValueError: bad, its traceback is above\n"
    )


def test_notes_alone_are_no_faults(script: Path) -> None:
    note = Finding("odd", Level.NOTE, "odd", "", Site(str(script), 1, "<module>", 0, 1, 6))
    out = printed(report(note, exit_code=ExitCode.OK))
    assert out.startswith("note[odd]: odd\n")
    assert "help" not in out
    assert "\nno gradient faults: 1 note; 40 backward calls" in out


def test_faults_that_were_asked_not_to_matter_are_still_counted(script: Path) -> None:
    out = printed(report(finding(Site(str(script), 1, "<module>")), exit_code=ExitCode.OK))
    assert "\n1 error; 40 backward calls" in out


def test_remarks_come_before_the_summary() -> None:
    assert printed(report(exit_code=0, remarks=("one thread was not seen",))).startswith(
        "remark: one thread was not seen\n\nno gradient faults"
    )


def test_text_of_the_user_is_never_markup(script: Path) -> None:
    site = source(script, 'print("[red]:smile:[/red]")  # [/]', column=0, end_line=1, end_column=27)
    out = printed(report(finding(site, Related(site, "[bold]x[/]"), message="[b]y[/b] [/]", mend="[link=a]z[/]")))
    for literal in ('1 │ print("[red]:smile:[/red]")  # [/]\n', "[bold]x[/]\n", ": [b]y[/b] [/]\n", "[link=a]z[/]\n"):
        assert literal in out


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("\tif x:\ty = f(x)", "f(x)"),
        ("a\tb\tc", "c"),
        ('d["你好"] = f("世界")', 'f("世界")'),
        ("é = g(z)", "g(z)"),
        ("ｗｉｄｅ", "ｉｄ"),
        ("pass", "pass"),
    ],
)
def test_carets_stand_below_what_they_mean(script: Path, line: str, meant: str) -> None:
    column = line.index(meant)
    assert marked(source(script, line, column=column, end_line=1, end_column=column + len(meant))) == meant


@pytest.mark.parametrize(
    ("site", "meant"),
    [
        ({}, "f(a,  # more"),
        ({"column": 4}, "f"),
        ({"column": 4, "end_line": 2, "end_column": 1}, "f(a,  # more"),
        ({"column": 999, "end_line": 1, "end_column": 1005}, "f(a,  # more"),
        ({"column": 6, "end_line": 1, "end_column": 999}, "a,  # more"),
        ({"column": 6, "end_line": 1, "end_column": 2}, "a"),
    ],
)
def test_carets_where_columns_are_unknown_or_odd(script: Path, site: dict[str, int], meant: str) -> None:
    assert marked(source(script, "    f(a,  # more", **site)) == meant


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("loss.backward()  # each time", "loss.backward()"),
        ("if True: pass  # so", "pass"),
        ("for x in data:", "for x in data:"),
    ],
)
def test_a_statement_is_underlined_where_no_column_is_known(script: Path, line: str, meant: str) -> None:
    assert marked(source(script, line)) == meant


@pytest.mark.parametrize("place", [0, 5, 60, 100, 400, 994])
def test_long_lines_are_cut_around_the_carets(script: Path, place: int) -> None:
    line = ("x" * place + "target" + "y" * 2000)[:1000]
    site = source(script, line, column=place, end_line=1, end_column=place + 6)
    assert marked(site, width=60) == "target"
    shown = printed(report(finding(site)), width=60).splitlines()[3]
    assert 50 < cell_len(shown) <= 60
    assert shown.startswith("1 │ …") == (place > 50)
    assert shown.endswith("…") == (place < 994)


def test_what_is_wider_than_the_terminal_is_shown_from_its_beginning(script: Path) -> None:
    site = source(script, "y" * 100 + "x" * 300 + "z", column=100, end_line=1, end_column=400)
    assert set(marked(site, width=60)) == {"x"}


def test_an_ascii_stream_gets_ascii(script: Path) -> None:
    site = source(script, 'd["é"] = f(x)', column=9, end_line=1, end_column=13)
    out = printed(report(finding(site, message="naïve…")), encoding="ascii")
    assert r"error[some-rule]: na\xefve\u2026" in out
    assert '1 | d["\\xe9"] = f(x)\n  |             ^^^^\n' in out


@pytest.mark.parametrize("width", [1, 10, 30])
def test_nothing_is_too_narrow(script: Path, width: int) -> None:
    assert "some-rule" in printed(report(finding(Site(str(script), 7, "train", 8, 7, 23))), width=width)


def test_control_characters_and_halves_of_characters_are_spelled_out(script: Path) -> None:
    site = source(script, "x = '\x1b[31m\u202e'", column=0, end_line=1, end_column=1)
    out = printed(report(finding(site, message="bell \x07 half \udc80")))
    assert r"1 │ x = '\x1b[31m\u202e'" in out
    assert r"bell \x07 half \udc80" in out


def test_a_console_without_colour_gets_none_and_one_with_colour_the_same_text(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    what = report(finding(Site(str(script), 7, "train", 8, 7, 23), mend="type `x`"))
    coloured = printed(what, force_terminal=True)
    assert "\x1b[" not in printed(what)
    assert "\x1b[1;31m^" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed(what)
