"""unneeded-retain, on events written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradtrace.model.events import Backward, End, Event, Step
from gradtrace.model.finding import Finding
from gradtrace.model.site import Site, Stack
from gradtrace.rules.unneeded_retain import UnneededRetain

SOURCE = """\
def train(loader):
    for x in loader:
        first.backward(retain_graph=True)
        second.backward(retain_graph=True)
        library(x)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def call(path: str, number: int, line: int, entered: tuple[int, ...] = (), **facts: Any) -> Backward:
    stack: Stack = (Site(path, line, "train"),)
    known: dict[str, Any] = {"retain_graph": True, "create_graph": False}
    return Backward(number, "backward", stack, "loss", number, nodes=3, entered=entered, **(known | facts))


def found(*events: Event) -> list[Finding]:
    rule = UnneededRetain()
    return [finding for event in (*events, End()) for finding in rule.see(event)]


def step(*held: int) -> Step:
    return Step(1, "Adam", 7, (), (), held=held)


def test_a_graph_that_nothing_enters(path: str) -> None:
    (finding,) = found(call(path, 1, 3), call(path, 2, 3))
    assert finding.site.line == 3
    assert finding.help == "remove retain_graph=True"


def test_a_graph_that_the_next_line_needs(path: str) -> None:
    assert not found(call(path, 1, 3), call(path, 2, 4, (1,), retain_graph=False))


def test_the_last_of_each_turn_is_held_through_the_step(path: str) -> None:
    turns = [[call(path, n, 3), call(path, n + 1, 3, (n,)), step(n + 1)] for n in (1, 3, 5)]
    (finding,) = found(*(event for turn in turns for event in turn))
    assert "3 graphs were held" in finding.message
    rows = [[call(path, n, 3), call(path, n + 1, 3, (n,)), step()] for n in (1, 3, 5)]
    assert not found(*(event for turn in rows for event in turn))


def test_a_graph_that_another_line_needs_now_and_then(path: str) -> None:
    assert not found(
        call(path, 1, 3), step(1), call(path, 2, 3), step(1, 2), call(path, 3, 4, (2,), retain_graph=False)
    )


def test_an_option_that_a_library_sets(path: str) -> None:
    assert not found(call(path, 1, 5))


def test_a_call_that_failed(path: str) -> None:
    assert not found(call(path, 1, 3, error="RuntimeError: no"))


def test_a_run_that_ended_before_the_call_that_needs_it(path: str) -> None:
    rule = UnneededRetain()
    rule.see(call(path, 1, 3))
    assert not list(rule.see(End(held=(1,))))
    rule.see(call(path, 2, 3))
    assert list(rule.see(End(held=(2,))))


def test_a_long_run_keeps_little(path: str) -> None:
    rule = UnneededRetain()
    for number in range(1, 1_000):
        rule.see(call(path, number, 3))
    (line,) = rule._lines.values()
    assert len(line.pending) <= 64
