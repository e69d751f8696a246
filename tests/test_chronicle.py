"""How a story folds, on statements told by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gradtrace.model.finding import Ended, Finding, Level
from gradtrace.model.site import Site
from gradtrace.model.story import Fact, Graded, Iteration, Loop, Made, Printed, Story, StoryStep, Value
from gradtrace.stories.chronicle import Chronicle, steps_of

SOURCE = """\
w = 1
while True:
    a = w
    for b in range(2):
        c = b
    print(a)
d = f(w)
def f(x):
    y = x
    return y
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "told.py"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


def made(name: str, number: float = 1.0) -> Made:
    return Made(
        name, Value((), "float32", numbers=(number,), low=number, mean=number, high=number), True, False, op="Add"
    )


def graded(number: float) -> Graded:
    value = Value((1,), "float32", numbers=(number,), low=number, mean=number, high=number)
    return Graded("w", "accumulated", value, value)


def tell(chronicle: Chronicle, path: str, *statements: tuple[int, Sequence[Fact]]) -> None:
    for line, facts in statements:
        chronicle.begin(path, line)
        chronicle.end(facts)


def finish(chronicle: Chronicle, *findings: Finding) -> Story:
    return chronicle.story("told.py", Ended("finished"), findings)


def the_loop(story: Story) -> Loop:
    (loop,) = (item for item in story.items if isinstance(item, Loop))
    return loop


def test_an_endless_loop_begins_anew_with_its_first_statement(path: str) -> None:
    chronicle = Chronicle()
    tell(chronicle, path, (1, []), (2, []), *[(3, [made("a")]), (6, [])] * 5)
    loop = the_loop(finish(chronicle))
    assert (loop.count, loop.alike, len(loop.shown)) == (5, 4, 1)
    assert loop.source == "while True:"


def test_loops_in_loops_fold_by_themselves(path: str) -> None:
    chronicle = Chronicle()
    inner = [(4, []), (5, [made("c")]), (4, []), (5, [made("c")]), (4, [])]
    tell(chronicle, path, *[(3, [made("a")]), *inner, (6, [])] * 3)
    outer = the_loop(finish(chronicle))
    assert outer.count == 3
    (turn,) = outer.shown
    (loop,) = (item for item in turn.items if isinstance(item, Loop))
    assert (loop.count, loop.alike) == (2, 1)


def test_a_turn_that_differs_shows_what_is_new_in_it(path: str) -> None:
    chronicle = Chronicle()
    tell(chronicle, path, *[(3, [made("a")]), (6, [])] * 3, (3, [made("a", float("nan")), graded(2.0)]), (6, []))
    loop = the_loop(finish(chronicle))
    assert [turn.number for turn in loop.shown] == [1, 4]
    (step,) = steps_of(loop.shown[1].items)
    assert step.facts == (graded(2.0),)
    assert loop.shown[1].differences


def test_a_long_run_keeps_a_few_turns_and_the_way_of_its_numbers(path: str) -> None:
    chronicle = Chronicle()
    for turn in range(10_000):
        tell(chronicle, path, (3, [made("a", 9.0 - turn), graded(turn)]), (6, [Printed(f"{turn}\n", ())]))
    loop = the_loop(finish(chronicle))
    assert (loop.count, loop.alike, len(loop.shown), len(loop.printed)) == (10_000, 9_999, 1, 6)
    losses, gradients = loop.series
    assert (losses.name, losses.first, losses.last, losses.falls) == ("a", (8.0, 7.0, 6.0), -9990.0, True)
    assert (gradients.name, gradients.count, gradients.rises) == ("w.grad", 9_999, True)


def test_a_finding_is_told_in_the_turn_in_which_it_was_found(path: str) -> None:
    found = Finding("stale-grad", Level.ERROR, "used twice", "clear it", Site(path, 3, "<module>"))
    lost = Finding("freed-graph", Level.ERROR, "freed", "keep it", Site(path, 99, "<module>"))
    chronicle = Chronicle()
    for turn in range(4):
        tell(chronicle, path, (3, [made("a")]))
        chronicle.begin(path, 6)
        if turn == 2:
            chronicle.found(found)
        chronicle.end([])
    story = finish(chronicle, found, lost)
    first, third = the_loop(story).shown
    assert (first.number, third.number) == (1, 3)
    (step,) = steps_of(third.items)
    assert story.findings == {step.number: (found,)}
    assert story.elsewhere == (lost,)


def test_a_call_that_tells_the_same_again_refers_to_the_first(path: str) -> None:
    chronicle = Chronicle()
    for _ in range(2):
        chronicle.begin(path, 7)
        chronicle.enter("f", path, 8, ("x = w",))
        tell(chronicle, path, (9, [made("y")]), (10, []))
        chronicle.leave()
        chronicle.end([made("d")])
    first, second = (item for item in finish(chronicle).items if isinstance(item, StoryStep))
    assert [step.line for step in steps_of(first.calls[0].items)] == [9, 10]
    assert (second.calls[0].items, second.calls[0].like) == ((), first.calls[0].items[0].number)  # type: ignore[union-attr]


def test_calls_that_nobody_told_of_are_turns(path: str) -> None:
    chronicle = Chronicle(loops=2)
    for _ in range(3):
        chronicle.enter("f", path, 8)
        tell(chronicle, path, (9, [made("y")]))
        chronicle.leave()
    loop = the_loop(finish(chronicle))
    assert (loop.source, loop.count) == ("f", 3)
    assert [turn.number for turn in loop.shown if isinstance(turn, Iteration)] == [1, 2]
