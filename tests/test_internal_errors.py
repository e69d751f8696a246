"""Injects an error into every part of the watching in turn: the script must not notice, and the report must say so."""

from __future__ import annotations

import contextlib
import io
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import pytest

from gradtrace.rules import Judge
from gradtrace.stories.chronicle import Chronicle
from gradtrace.watcher.code import frames
from gradtrace.watcher.core import backward, book, compiled, mode, session, steps, trail
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.faults import values
from gradtrace.watcher.parameters import births, leaves
from gradtrace.watcher.parameters.lives import Lives
from gradtrace.watcher.pictures import flow
from gradtrace.watcher.pictures.snapshot import Snapshots
from gradtrace.watcher.story import teller
from gradtrace.watcher.watch import Watch

SCRIPT = Path(__file__).parent / "fixtures" / "internal_errors.py"
#: the ways into the core, and hooks of torch's and Python's that are no method of an observer
CORE: tuple[tuple[Any, str], ...] = (
    *((mode.WatchMode, name) for name in ("_failed", "_made", "_stand_aside")),
    *((mode._HandlerTable, name) for name in ("of", "of_nodes")),
    *((steps.Steps, name) for name in ("_begin", "_judge", "_use", "_own")),
    *((backward.Calls, "_begin"), (backward.BackwardCall, "finish")),
    *((session.Session, name) for name in ("dispatch", "held", "leaves")),
    *((frames.Frames, "stack"), (trail.Trail, "add"), (book.Book, "step"), (flow.Flow, "_read")),
    *((births.Births, "_registered"), (leaves.Leaves, "_named"), (values.Values, "_look")),
    *((compiled, "running"), (session, "out_of_reach"), (mode, "_original")),
    *((teller.Storyteller, name) for name in ("_wants", "_enter", "_reach", "_raise", "_leave", "_note_printed")),
)


class InjectedError(LookupError):
    """Raised in the place of a piece of ours."""


class Run(NamedTuple):
    printed: str
    error: str


def watch(judge: Judge, owner: Any = None) -> Watch:
    """With what has `owner` at work."""
    story = teller.Storyteller(Chronicle(), teller.Wanted()) if owner is teller.Storyteller else None
    snapshots = Snapshots(stop_when_repeated=False, gradients=True) if owner in (Snapshots, flow.Flow) else None
    return Watch(judge.see, rules=True, story=story, snapshots=snapshots, lives=owner is Lives)


def pieces() -> Iterator[tuple[Any, str]]:
    """Every method by which torch, or the core, calls an observer: `(Ledger, "after_step")`; and those of the core."""
    found = {one: None for owner in (teller.Storyteller, Snapshots, Lives) for one in watch(Judge(), owner)._observers}
    for observer in {type(one): one for one in found}.values():
        kind = type(observer)
        for name in vars(Observer):
            if isinstance(vars(kind).get(name), FunctionType) and not name.startswith("__"):
                yield kind, name
        handlers = [*observer.functions().values(), observer.made_nodes(), observer.made_plain(), observer.woken()]
        for handler in dict.fromkeys(handlers):
            if isinstance(handler, MethodType):
                yield type(handler.__self__), handler.__name__
    yield from CORE


def plain() -> Run:
    """What the script prints, and how it ends."""
    out, error = io.StringIO(), ""
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except BaseException as caught:  # noqa: BLE001 - it may end by anything
            error = f"{type(caught).__name__}: {caught}"
    return Run(out.getvalue(), error)


@pytest.fixture(scope="module")
def expected() -> Run:
    return plain()


@pytest.mark.parametrize(("owner", "name"), list(pieces()), ids=lambda value: getattr(value, "__name__", value))
def test_reach_neither_the_script_nor_the_verdict(
    owner: Any, name: str, expected: Run, whole: set[tuple[str, str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def fail(*_: Any, **__: Any) -> Any:
        called.append(1)
        raise InjectedError("broken")

    monkeypatch.setattr(owner, name, fail)
    judge = Judge()
    with (running := watch(judge, owner)):
        assert plain() == expected
    if not called:
        return
    assert len(called) < 3
    assert [remark for remark in running.remarks if "InjectedError: broken" in remark]
    # the observer is not called again
    for_rules = getattr(owner, "serves_rules", owner is not flow.Flow)
    assert judge.failed is for_rules
    assert bool(judge.unjudged) or not for_rules
    assert {finding.place for finding in judge.findings} <= whole


@pytest.fixture(scope="module")
def whole() -> set[tuple[str, str, int]]:
    """What is found where nothing fails: an error adds nothing to it."""
    judge = Judge()
    with (running := watch(judge)):
        plain()
    assert running.remarks == ()
    assert not judge.failed
    return {finding.place for finding in judge.findings}
