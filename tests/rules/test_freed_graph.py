"""freed-graph, on events written by hand, and through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from casefiles import case

from gradtrace.model.events import Backward, Owners, Reentry
from gradtrace.model.finding import Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.freed_graph import FreedGraph


def test_the_command_says_the_same(check: Callable[..., Any], tmp_path: Path) -> None:
    checked = check(case("freed-graph/bad/state_stored_by_a_statement_of_its_own"))
    (tmp_path / "train.py").write_text(checked.script, encoding="utf-8")
    command = [sys.executable, "-m", "gradtrace", "check", "--format", "json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    (finding,) = json.loads(done.stdout)["findings"]
    assert {(finding["rule"], finding["line"])} == checked.marked
    assert "`self.hidden = hidden.detach()`" in finding["help"]
    assert done.returncode == 1


AGAIN = "RuntimeError: Trying to backward through the graph a second time (or ...)"


def at(*lines: int) -> Stack:
    """Frames of a file that cannot be read, innermost first."""
    return tuple(Site("/nowhere/train.py", line, f"f{len(lines) - depth}") for depth, line in enumerate(lines))


def reentry(**facts: Any) -> Reentry:
    """By default: at line 4 a hidden state of the last turn enters, which line 4 made and line 7 freed."""
    known: dict[str, Any] = {
        "call": 1,
        "call_stack": at(7),
        "call_request": "backward",
        "call_root": "loss",
        "freed": True,
        "saved_lost": True,
        "op": "TanhBackward0",
        "node": 12,
        "built": at(4),
        "used": at(5),
        "rerun": 1,
        "entry": at(4),
        "entered_later": True,
        "through": frozenset({"MseLossBackward0"}),
        "own_leaves": True,
        "view": False,
    }
    return Reentry(**(known | facts))


def call(*reentries: Reentry, error: str | None = AGAIN, line: int = 7, **facts: Any) -> Backward:
    known: dict[str, Any] = {"root": "loss", "root_node": 30, "retain_graph": False, "create_graph": False, "nodes": 9}
    return Backward(2, "backward", at(line), **(known | facts), reentries=reentries, error=error)


def line_of(event: Backward) -> int:
    (finding,) = FreedGraph().see(event)
    return finding.site.line


def test_the_line_where_the_state_enters() -> None:
    (finding,) = FreedGraph().see(call(reentry()))
    assert (finding.site.line, finding.level) == (4, Level.ERROR)
    assert "`loss`" in finding.message
    assert "detach()" in finding.help
    assert [related.site.line for related in finding.related] == [5, 7]


def test_the_line_that_built_what_every_call_needs() -> None:
    assert line_of(call(reentry(built=at(2), rerun=0))) == 2


def test_the_call_that_freed_it_where_nothing_new_was_built() -> None:
    assert line_of(call(reentry(built=at(2), rerun=0, entered_later=False, own_leaves=False), line=8)) == 7


def test_the_same_root_again() -> None:
    assert line_of(call(reentry(built=at(2), entry=(), entered_later=False, rerun=0))) == 2
    assert line_of(call(reentry(built=at(2), entry=(), entered_later=False, rerun=0), line=8)) == 7


@pytest.mark.parametrize("kind", ["SelectBackward0", "UnbindBackward0"])
def test_rows_need_the_option(kind: str) -> None:
    through = frozenset({kind, "SumBackward0"})
    assert line_of(call(reentry(built=at(2), rerun=0, own_leaves=False, through=through))) == 7


def test_a_gradient_asked_for_first() -> None:
    (finding,) = FreedGraph().see(call(reentry(call_request="grad", built=at(2), rerun=0), line=9))
    assert finding.site.line == 7
    assert "create_graph=True" in finding.help


def test_a_loss_that_strays_into_what_another_optimizer_trains() -> None:
    g, d = frozenset({1}), frozenset({2})
    generator_last = reentry(used=at(3), rerun=0, owners=Owners(old=g, earlier=d, new=d, stepped=d))
    assert line_of(call(generator_last, line=9)) == 3
    generator_first = reentry(entry=at(8), rerun=0, owners=Owners(old=g, earlier=d, new=d, stepped=g))
    assert line_of(call(generator_first, line=9)) == 8


def test_of_several_entries_the_one_where_something_is_gone() -> None:
    harmless, cause = reentry(saved_lost=False, entry=at(3), built=at(1), view=True), reentry()
    assert line_of(call(harmless, cause)) == 4


def test_a_second_run_without_an_error() -> None:
    trained = Owners(old=frozenset({1}), stepped=frozenset({1}))
    (finding,) = FreedGraph().see(call(reentry(owners=trained, saved_lost=False), error=None))
    assert finding.level is Level.WARNING
    assert not list(FreedGraph().see(call(reentry(owners=trained, view=True), error=None)))
    assert not list(FreedGraph().see(call(reentry(), error=None)))


def test_an_error_of_another_kind() -> None:
    assert not list(FreedGraph().see(call(reentry(), error="RuntimeError: the size of tensor a must match")))


def test_a_graph_of_which_nothing_is_known() -> None:
    assert line_of(call()) == 7
    nowhere = Backward(2, "backward", (), "", 1, False, False, 3, error=AGAIN)
    assert not list(FreedGraph().see(nowhere))
