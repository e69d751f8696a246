"""Folds a story while it is recorded: loops show their first iterations and what differed later, repeated calls their first.

The recorder says `enter` and `leave` for a function of the user's, `begin` and `end` for a statement; what is folded
away is dropped at once, so that the memory of a long run stays flat. No torch here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gradtrace.model.finding import Ended, Finding
from gradtrace.model.story import (
    Fact,
    FunctionCall,
    Graded,
    Item,
    Iteration,
    Left,
    Loop,
    Made,
    Printed,
    Series,
    Story,
    StoryStep,
    Written,
)
from gradtrace.source import syntax

#: iterations shown besides the first ones, because something differed in them
_DIFFERENT = 3
#: numbers kept of a series from its start, series and printed lines kept of a loop
_FIRST, _SERIES, _LINES = 3, 4, 6
#: kinds of facts of one line, and shapes of calls, that are remembered
_KINDS = 2_000

Key: TypeAlias = tuple[str, str, int]
_Seen: TypeAlias = dict[tuple[str, int], set[Hashable]]


@dataclass
class _Numbers:
    """How one number went so far."""

    first: list[float] = field(default_factory=list)
    last: float = 0.0
    count: int = 0
    rises: bool = True
    falls: bool = True

    def add(self, number: float) -> None:
        if self.count:
            self.rises, self.falls = self.rises and number > self.last, self.falls and number < self.last
        if len(self.first) < _FIRST:
            self.first.append(number)
        self.last, self.count = number, self.count + 1

    def series(self, name: str) -> Series:
        return Series(name, tuple(self.first), self.last, self.count, self.rises, self.falls)


@dataclass
class _Iterations:
    """A loop that is running. `head` is its statement's first line, 0 for the calls of a function."""

    path: str
    head: int
    source: str
    iteration: list[Item] = field(default_factory=list)
    count: int = 0
    shown: list[Iteration] = field(default_factory=list)
    #: the kinds of facts that each line has shown
    seen: _Seen = field(default_factory=dict)
    numbers: dict[str, _Numbers] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    alike: int = 0

    def is_over(self) -> bool:
        """Whether the iteration that began is none: in a loop written on one line its head runs once more at the end."""
        return all(
            isinstance(one, StoryStep) and one.line == self.head and not one.facts + one.calls for one in self.iteration
        )

    def follow(self, items: Sequence[Item]) -> None:
        """Keeps of a iteration that is not shown how its numbers go, and what it printed."""
        for name, number in _numbers_of(items):
            if name in self.numbers or len(self.numbers) < _SERIES:
                self.numbers.setdefault(name, _Numbers()).add(number)
        if len(self.printed) < _LINES:
            self.printed += (fact.text for fact in facts_of(items) if isinstance(fact, Printed))


@dataclass
class _Open:
    """A function that is running: its finished items, its loops from the outermost, and its statement."""

    function: str
    path: str
    line: int
    given: tuple[str, ...] = ()
    items: list[Item] = field(default_factory=list)
    loops: list[_Iterations] = field(default_factory=list)
    step: _OpenStep | None = None

    @property
    def block(self) -> list[Item]:
        return self.loops[-1].iteration if self.loops else self.items


@dataclass
class _OpenStep:
    number: int
    path: str
    line: int
    source: str
    calls: list[FunctionCall] = field(default_factory=list)


class Chronicle:
    """Records the story as it happens. `loops` is how many iterations of each loop are shown in any case; `on_step` is
    called when a statement begins."""

    def __init__(self, loops: int = 1, on_step: Callable[[], None] = lambda: None) -> None:
        self._loops = loops
        self._on_step = on_step
        self._steps = 0
        self._open: list[_Open] = [_Open("", "", 0)]
        #: which step showed a call of this shape
        self._calls: dict[Hashable, int] = {}
        #: findings by the step to which they belong
        self._placed: dict[int, list[Key]] = {}

    def enter(self, function: str, path: str, line: int, given: tuple[str, ...] = ()) -> None:
        """A function begins, called by the statement that runs."""
        self._open.append(_Open(function, path, line, given))

    def leave(self) -> None:
        """The innermost function ended."""
        if len(self._open) == 1:
            return
        self.end(())
        done = self._open.pop()
        self._close(done, 0)
        outer = self._open[-1].step
        if outer is not None:
            outer.calls.append(self._shown(done))
        elif done.function:
            self._add_call(done)

    def _shown(self, done: _Open) -> FunctionCall:
        call = FunctionCall(done.function, done.path, done.line, done.given, tuple(done.items))
        if self._has_findings(done.items):
            return call
        own, shape = next(_numbers(done.items), 0), self._shape_of(done.items)
        first = self._calls.get((done.path, done.line, shape), own)
        if len(self._calls) < _KINDS:
            self._calls[done.path, done.line, shape] = first
        return call if first == own else replace(call, items=(), like=first if shape else 0)

    def _add_call(self, done: _Open) -> None:
        """A call that no statement of the story made: the calls of one function are iterations, as those of a loop."""
        root = self._open[-1]
        if not root.loops or (root.loops[-1].path, root.loops[-1].source) != (done.path, done.function):
            self._close(root, 0)
            root.loops.append(_Iterations(done.path, done.line, done.function))
        root.loops[-1].iteration += done.items
        self._close_iteration(root.loops[-1])

    def begin(self, path: str, line: int) -> None:
        """A statement begins in the innermost function."""
        here = self._open[-1]
        self.end(())
        self._enter_loops(here, path, line)
        self._steps += 1
        here.step = _OpenStep(self._steps, path, line, syntax.text_of(path, line))
        self._on_step()

    def end(self, facts: Sequence[Fact]) -> None:
        """The statement that runs in the innermost function has ended."""
        here = self._open[-1]
        step, here.step = here.step, None
        if step is not None:
            here.block.append(
                StoryStep(step.number, step.path, step.line, step.source, tuple(facts), tuple(step.calls))
            )

    def _enter_loops(self, here: _Open, path: str, line: int) -> None:
        """Closes the loops that the statement has left, and the iteration that it begins again."""
        around = syntax.loops_around(path, line)
        heads = [loop.lineno for loop in around]
        while (
            len(here.loops) > len(heads) or [iterations.head for iterations in here.loops] != heads[: len(here.loops)]
        ):
            self._close(here, len(here.loops) - 1)
        inside = here.loops and len(here.loops) == len(heads)
        if inside and (line == heads[-1] or (_is_endless(around[-1]) and _begins(around[-1], path, line))):
            self._close_iteration(here.loops[-1])
        here.loops += [_Iterations(path, head, syntax.text_of(path, head)) for head in heads[len(here.loops) :]]

    def _close(self, here: _Open, depth: int) -> None:
        """Closes the running loops from `depth` on."""
        while len(here.loops) > depth:
            iterations = here.loops[-1]
            if iterations.is_over():
                iterations.iteration = []
            self._close_iteration(iterations)
            here.loops.pop()
            if iterations.count:
                here.block.append(_folded(iterations))

    def _close_iteration(self, iterations: _Iterations) -> None:
        items, iterations.iteration = iterations.iteration, []
        if not _worth(items):
            return
        iterations.count += 1
        different = tuple(new for item in items if (new := self._difference(item, iterations.seen)))
        if iterations.count <= self._loops:
            iterations.shown.append(Iteration(iterations.count, tuple(items)))
        elif different and (len(iterations.shown) < self._loops + _DIFFERENT or self._has_findings(items)):
            iterations.shown.append(Iteration(iterations.count, different, True))
        else:
            iterations.alike += not different
            iterations.follow(items)
        for step in steps_of(items):
            seen = iterations.seen.setdefault((step.path, step.line), set())
            if len(seen) < _KINDS:
                seen.update(_kinds_of(step.facts))

    def _has_findings(self, items: Sequence[Item]) -> bool:
        return any(step.number in self._placed for step in steps_of(items))

    def _difference(self, item: Item, seen: _Seen) -> Item | None:
        """What of a step or loop no iteration before has shown; None where that is nothing."""
        if isinstance(item, Loop):
            return item if self._loop_differs(item, seen) else None
        known = seen.get((item.path, item.line), set())
        facts = tuple(fact for fact in item.facts if _counts(fact) and _kind(fact) not in known)
        calls = []
        for call in item.calls:
            items = [new for one in call.items if (new := self._difference(one, seen)) is not None]
            if items:
                calls.append(replace(call, items=tuple(items)))
        if facts or calls or item.number in self._placed:
            return replace(item, facts=facts, calls=tuple(calls))
        return None

    @staticmethod
    def _loop_differs(loop: Loop, seen: _Seen) -> bool:
        for iteration in loop.shown:
            for step in steps_of(iteration.items):
                if _kinds_of(step.facts) - seen.get((step.path, step.line), set()):
                    return True
        return False

    def _shape_of(self, items: Iterable[Item]) -> tuple[Hashable, ...]:
        """What happened, without the numbers, and without what only prints."""
        return tuple((item.line, kinds) for item in items if (kinds := self._kinds(item)))

    def _kinds(self, item: Item) -> frozenset[Hashable]:
        if isinstance(item, Loop):
            return frozenset([("loop", tuple(self._shape_of(iteration.items) for iteration in item.shown))])
        return frozenset(
            _kinds_of(item.facts) | {self._kind_of_call(call) for call in item.calls if _says_something(call)}
        )

    def _kind_of_call(self, call: FunctionCall) -> Hashable:
        return call.function, call.like or next(_numbers(call.items), 0)

    def found(self, finding: Finding) -> None:
        """A rule found something just now: it belongs to the latest step at its line."""
        key: Key = finding.rule, *finding.site.place
        for here in reversed(self._open):
            steps = (
                step
                for items in (here.items, *(iterations.iteration for iterations in here.loops))
                for step in steps_of(items)
            )
            closed = [step.number for step in steps if (step.path, step.line) == _statement(finding)]
            own = here.step is not None and (here.step.path, here.step.line) == _statement(finding)
            if own and here.step:
                closed.append(here.step.number)
            if closed:
                self._placed.setdefault(max(closed), []).append(key)
                return

    def so_far(self, script: str, findings: Sequence[Finding]) -> Story:
        """What will stay as it is, with what is running: of that only what cannot be folded away any more."""
        return self._as_story(script, Ended("finished"), self._running_items(0), findings)

    def _running_items(self, depth: int) -> tuple[Item, ...]:
        """The items of the function at this depth."""
        here = self._open[depth]
        block = [*here.block, *self._running_step(depth)]
        outer = [here.items, *(one.iteration for one in here.loops)]
        for at in reversed(range(len(here.loops))):
            iterations = here.loops[at]
            shown = [*iterations.shown]
            if iterations.count < self._loops and _worth(block):
                shown.append(Iteration(iterations.count + 1, tuple(block)))
            loop = Loop(
                iterations.path, iterations.head, iterations.source, iterations.count, tuple(shown), running=True
            )
            block = [*outer[at], *([loop] if shown else [])]
        return tuple(block)

    def _running_step(self, depth: int) -> list[Item]:
        """The statement that runs at this depth, if it has called a function for the first time; what it changes is not
        known yet."""
        step = self._open[depth].step
        if step is None or depth + 1 >= len(self._open):
            return []
        callee = self._open[depth + 1]
        calls = [*step.calls]
        if not any(key[:2] == (callee.path, callee.line) for key in self._called()):
            items = self._running_items(depth + 1)
            calls.append(FunctionCall(callee.function, callee.path, callee.line, callee.given, items, running=True))
        return [StoryStep(step.number, step.path, step.line, step.source, (), tuple(calls), running=True)]

    def _called(self) -> Iterator[tuple[Hashable, ...]]:
        """Functions of which a call was shown."""
        for key in self._calls:
            assert isinstance(key, tuple)
            yield key

    def story(self, script: str, ended: Ended, findings: Sequence[Finding], remarks: tuple[str, ...] = ()) -> Story:
        """The whole, with the findings as they are in the end."""
        while len(self._open) > 1:
            self.leave()
        self.end(())
        root = self._open[0]
        self._close(root, 0)
        return self._as_story(script, ended, tuple(root.items), findings, remarks)

    def _as_story(
        self,
        script: str,
        ended: Ended,
        items: tuple[Item, ...],
        findings: Sequence[Finding],
        remarks: tuple[str, ...] = (),
    ) -> Story:
        steps = {step.number: step for step in steps_of(items)}
        placed: dict[int, tuple[Finding, ...]] = {}
        elsewhere = []
        for finding in findings:
            at = self._place_of(finding, steps)
            if at:
                placed[at] = (*placed.get(at, ()), finding)
            else:
                elsewhere.append(finding)
        return Story(script, items, ended, placed, tuple(elsewhere), remarks)

    def _place_of(self, finding: Finding, steps: dict[int, StoryStep]) -> int:
        """The step that shows a finding: where it was found, else the first at its line; 0 where there is none."""
        key: Key = finding.rule, *finding.site.place
        known = (number for number, keys in self._placed.items() if key in keys and number in steps)
        path, first, last = _lines_of(finding)
        there = (number for number, step in steps.items() if step.path == path and first <= step.line <= last)
        return next(known, 0) or next(there, 0)


def _statement(finding: Finding) -> tuple[str, int]:
    """The file and the first line of the statement at which a finding is."""
    found = syntax.statement(finding.site.path, finding.site.line)
    return finding.site.path, found.lineno if found is not None else finding.site.line


def _lines_of(finding: Finding) -> tuple[str, int, int]:
    """The file and the lines at which a finding may be shown: of a function's decorator those of the whole function."""
    path, line = _statement(finding)
    return path, *(syntax.function_lines(path, finding.site.line) or (line, line))


def _folded(iterations: _Iterations) -> Loop:
    series = tuple(numbers.series(name) for name, numbers in iterations.numbers.items())
    return Loop(
        iterations.path,
        iterations.head,
        iterations.source,
        iterations.count,
        tuple(iterations.shown),
        series,
        tuple(iterations.printed),
        iterations.alike,
    )


def _worth(items: Sequence[Item]) -> bool:
    """Whether a iteration has more in it than the head of its loop."""
    return any(
        isinstance(item, Loop) or item.facts or any(map(_says_something, item.calls)) or not is_head(item)
        for item in items
    )


def is_head(step: StoryStep) -> bool:
    """Whether a step only begins a loop's iteration, defines or imports: nothing to show where nothing changed."""
    found = syntax.statement(step.path, step.line)
    quiet = (
        ast.For,
        ast.While,
        ast.AsyncFor,
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.ClassDef,
        ast.Pass,
        ast.Try,
    )
    return isinstance(found, quiet) or (isinstance(found, ast.Expr) and isinstance(found.value, ast.Constant))


def _is_endless(loop: syntax.Loop) -> bool:
    """Whether a loop's head never runs again: `while True`."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)


def _begins(loop: syntax.Loop, path: str, line: int) -> bool:
    """Whether a loop's body begins with the statement on a line."""
    return syntax.statement(path, line) is loop.body[0]


def steps_of(items: Iterable[Item]) -> Iterator[StoryStep]:
    """All steps, also those in loops and in called functions."""
    for item in items:
        if isinstance(item, Loop):
            for iteration in item.shown:
                yield from steps_of(iteration.items)
        else:
            yield item
            for call in item.calls:
                yield from steps_of(call.items)


def facts_of(items: Iterable[Item]) -> Iterator[Fact]:
    """All facts, in the order of the steps."""
    for step in steps_of(items):
        yield from step.facts


def _numbers(items: Iterable[Item]) -> Iterator[int]:
    return (step.number for step in steps_of(items))


def _numbers_of(items: Sequence[Item]) -> Iterator[tuple[str, float]]:
    """The numbers worth following from iteration to iteration: losses, then gradients; only the last of each name."""
    found: dict[str, float] = {}
    for fact in facts_of(items):
        value = fact.value if isinstance(fact, Made) and not fact.value.shape and fact.requires_grad else None
        if isinstance(fact, Graded) and fact.change in ("new", "accumulated"):
            value = fact.after
        if value is not None and value.size is not None and isinstance(fact, (Made, Graded)):
            name = f"{fact.name}.grad" if isinstance(fact, Graded) else fact.name
            found[name if value.numbers and len(value.numbers) == 1 else f"largest of {name}"] = value.size
    return iter(sorted(found.items(), key=lambda pair: pair[0].endswith(".grad")))


def _says_something(call: FunctionCall) -> bool:
    """Whether something happened in a call."""
    return bool(call.like) or any(_counts(fact) for fact in facts_of(call.items))


def _kinds_of(facts: Iterable[Fact]) -> set[Hashable]:
    return {_kind(fact) for fact in facts if _counts(fact)}


def _counts(fact: Fact) -> bool:
    """Whether a fact makes a iteration different: what is printed now and then does not."""
    return not isinstance(fact, (Printed, Left))


_INDEX = re.compile(r"\[\d+\]")


def _kind(fact: Fact) -> Hashable:
    """A fact without its numbers: two iterations with the same kinds of facts are the same."""
    name = _INDEX.sub("[]", getattr(fact, "name", ""))
    if isinstance(fact, Made):
        odd = bool(fact.value.nan), bool(fact.value.inf)
        return "made", name, fact.requires_grad, fact.op, _INDEX.sub("[]", fact.formula), fact.cut, fact.reached, odd
    if isinstance(fact, Graded):
        after = fact.after
        state = (bool(after.nan), bool(after.inf), after.zero) if after is not None else ()
        return "graded", name, fact.change, fact.unused, state
    if isinstance(fact, Written):
        return "written", name, fact.step, bool(fact.after.nan), bool(fact.after.inf)
    values = [getattr(fact, name) for name in fact.__slots__ if name not in ("number", "operations")]
    return type(fact).__name__, str(values)
