"""Gradients are computed and cleared again before any step uses them.

Why it matters
    zero_grad() in the wrong place discards what backward() just computed. The step then moves the parameters by less than
    intended (only the last micro-batch counts), or not at all, and no error is raised. The same happens when step()
    comes before backward() in each iteration, and zero_grad() before both.

Bad
    for batch in batches:
        for x, y in batch:
            optimizer.zero_grad()  # discards what earlier micro-batches added
            loss_fn(model(x), y).backward()
        optimizer.step()

Good
    for batch in batches:
        optimizer.zero_grad()
        for x, y in batch:
            loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the line that clears the gradients; where step() comes before backward(), at the step; where the code has no
step at all, at the backward call. A step that never runs is reported by never-stepped. A gradient that another optimizer's
step has used, or that your own code has read, is not counted: a generator's loss leaves gradients in the discriminator, and
clearing those is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gradtrace.model.events import End, Event, Given, OptimizerStep, Unstepped
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import shared_depth, uncalled
from gradtrace.rules.judging.evidence import FOLLOWED, IN_A_ROW, REGULARLY, TWICE, oldest_beyond, regularly
from gradtrace.rules.judging.intent import is_unused, is_watched, later_calls
from gradtrace.rules.judging.naming import leaves_of, loss_of, step_call
from gradtrace.source import syntax

_Line: TypeAlias = tuple[Stack, str, bool]

#: lost calls that are enough where each step of a short run is concerned
_LOST_CALLS = 5
#: steps for losses that are always lost while others are used
_DROPPED_STEPS = 4
#: windows cut short that are remembered until the usual size is known
_CANDIDATES = 8


@dataclass(slots=True)
class _LostCalls:
    """What happened at one pair of lines: the call and the clearing."""

    steps: int = 0
    calls: int = 0
    #: how many steps had used calls of this line before it happened first
    before: int = 0
    last: Given | None = None
    step: OptimizerStep | None = None


@dataclass(slots=True)
class _Optimizer:
    #: steps that used something of a line
    used: Counter[_Line] = field(default_factory=Counter)
    steps: int = 0
    #: by call and clearing: nothing was left for the step; the same, but another optimizer had used its share; only a
    #: part was left; nothing of this line was ever used
    starved: dict[tuple[_Line, Stack], _LostCalls] = field(default_factory=dict)
    robbed: dict[tuple[_Line, Stack], _LostCalls] = field(default_factory=dict)
    thinned: dict[tuple[_Line, Stack], _LostCalls] = field(default_factory=dict)
    dropped: dict[tuple[_Line, Stack], _LostCalls] = field(default_factory=dict)
    #: how many calls a step used, where it used those of one line only and nothing was lost
    sizes: Counter[int] = field(default_factory=Counter)
    #: first steps after a loss: how many calls were lost, how many used
    cut: list[tuple[int, int, OptimizerStep]] = field(default_factory=list)


class ClearedGrad(Rule):
    id = "cleared-grad"
    level = Level.ERROR
    events = (OptimizerStep, Unstepped, End)
    covers = frozenset({"never-stepped"})
    needs = Needs(calls=2, steps=2)

    def __init__(self) -> None:
        self._of: dict[int, _Optimizer] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, OptimizerStep):
            if event.error is not None:
                return self._starved(_LostCalls(steps=1, last=event.lost[-1], step=event))
            self._count(self._of.setdefault(event.key, _Optimizer()), event)
            return [finding for one in oldest_beyond(FOLLOWED, self._of) for finding in self._judge(one)]
        if isinstance(event, Unstepped):
            return self._unstepped(event)
        if isinstance(event, End):
            return [finding for one in self._of.values() for finding in self._judge(one)]
        return []

    def _unstepped(self, event: Unstepped) -> list[Finding]:
        """No step of this optimizer is written where its gradients are computed and cleared. One that is written, and
        never runs, is a matter of never-stepped."""
        one = event.given
        if is_watched(one) or min(event.calls, event.clears) < REGULARLY:
            return []
        if one.foreign and event.taken:  # a loss that passes through these parameters on its way to others
            return []
        if any(uncalled((site,), "step") or later_calls(site, ("step",)) for site in one.stack):
            return []
        return self.finding(
            one.stack,
            f"the gradients of {loss_of(one, 'a backward call')} are computed {event.calls} times and cleared each time: the "
            f"`{event.optimizer}` that holds {leaves_of(one)} never makes a step",
            f"call `step()` of that `{event.optimizer}` after this backward call",
        )

    def _count(self, of: _Optimizer, step: OptimizerStep) -> None:
        of.steps += step.times
        fed = {_line(one) for one in step.given}
        for line in fed:
            of.used[line] += step.times
        thinned = self._note_losses(of, step, fed) if step.lost else 0
        if len(fed) != 1 or any(one.replaced for one in step.given):
            return
        # how many calls make up one step, with and without a loss
        if not thinned:
            of.sizes[len(step.given)] += step.times
        elif len(of.cut) < _CANDIDATES:
            of.cut.append((thinned, len(step.given), step))

    def _note_losses(self, of: _Optimizer, step: OptimizerStep, fed: set[_Line]) -> int:
        """How many calls of the lines that fed the step were lost before it."""
        lost = [one for one in step.lost if is_unused(one)]
        wasted = [one for one in lost if not one.checked and not one.elsewhere]
        thinned = [one for one in wasted if _line(one) in fed]
        if step.empty:
            _note(of.starved, lost, step)
            _note(of.robbed, [one for one in step.lost if one.taken and not one.read], step)
        elif step.given and not any(one.replaced for one in step.given):
            dropped = [one for one in wasted if _line(one) not in fed and not one.foreign and not one.heard]
            _note(of.thinned, thinned, step, of.used)
            _note(of.dropped, dropped, step)
        return len(thinned)

    def _judge(self, of: _Optimizer) -> Iterable[Finding]:
        for seen in of.starved.values():
            if seen.steps >= TWICE:
                yield from self._starved(seen)
        for seen in of.robbed.values():
            if seen.steps >= REGULARLY and not of.used:
                yield from self._starved(seen)
        thinned = [seen for (line, _), seen in of.thinned.items() if _is_thin(seen, of.used[line])]
        for seen in thinned:
            yield from self._thinned(seen)
        if not thinned:
            yield from self._cut_short(of)
        for (line, _), seen in of.dropped.items():
            if not of.used[line] and regularly(seen.steps, of.steps, _DROPPED_STEPS):
                yield from self._dropped(seen)

    def _starved(self, seen: _LostCalls) -> list[Finding]:
        one, step = seen.last, seen.step
        if one is None or step is None:
            return []
        moved = _comes_first(step.stack, one.stack)
        if moved:
            return self._swapped(seen, one, step, moved)
        return self.finding(
            one.cleared,
            f"the gradients of {loss_of(one, 'a backward call')} are cleared before `{step_call(step)}` uses them: "
            f"{f'{seen.steps} steps' if seen.steps > 1 else 'the step'} found no gradient in {leaves_of(one)}",
            "clear the gradients before the backward call, or after the step",
            (
                (one.stack, "the gradients are computed here"),
                (step.stack, "this step finds no gradient"),
                (_caller(one), "called from here"),
            ),
        )

    def _swapped(self, seen: _LostCalls, one: Given, step: OptimizerStep, moved: Stack) -> list[Finding]:
        """The step comes before the backward call: what an iteration computes is cleared in the next one."""
        backward = f"`{one.root}.backward()`" if one.root else "the backward call"
        what = f"`{step_call(step)}`" if moved == step.stack else "this call"
        return self.finding(
            moved,
            f"`{step_call(step)}` runs before {backward} in each iteration, after the gradients of the previous iteration "
            f"were cleared: {f'{seen.steps} steps' if seen.steps > 1 else 'the step'} found no gradient in "
            f"{leaves_of(one)}",
            f"move {what} below {backward}",
            (
                (step.stack, "this step finds no gradient"),
                (one.stack, "the gradients are computed here"),
                (one.cleared, "they are cleared here, before a step uses them"),
            ),
        )

    def _thinned(self, seen: _LostCalls) -> list[Finding]:
        one, step = seen.last, seen.step
        if one is None or step is None:
            return []
        return self.finding(
            one.cleared,
            f"the gradients of {loss_of(one, 'a backward call')} are cleared between the backward calls that belong to one "
            f"`{step_call(step)}`: "
            f"of {len(step.given) + len(step.lost)} calls only {len(step.given)} {'counts' if len(step.given) == 1 else 'count'}",
            "clear the gradients once per step: before the first of these backward calls, or after the step",
            ((one.stack, "each of these calls should count"), (step.stack, "this step uses only the last of them")),
        )

    def _cut_short(self, of: _Optimizer) -> list[Finding]:
        """A clearing in the middle of an accumulation window: the step after it has fewer calls than all others."""
        if not of.sizes:
            return []
        usual = of.sizes.most_common(1)[0][0]
        short = [step for lost, used, step in of.cut if used < usual and lost + used == usual]
        full = [step for lost, used, step in of.cut if used == usual and lost < usual]
        step = next(iter(short or full), None)
        if step is None:
            return []
        lost = [one for one in step.lost if is_unused(one)]
        one = lost[-1]
        what = f" of `{one.root}`" if one.root else ""
        message = f"the gradients of {len(lost)} backward calls{what} are cleared before any step has used them"
        if short:
            message += f": the next `{step_call(step)}` sums {len(step.given)} calls, the other steps sum {usual}"
        else:
            message += f": they are too few for a step, which sums {usual}"
        return self.finding(
            one.cleared,
            message,
            "clear the gradients only after a step"
            if short
            else "make a step with these gradients, or skip these batches",
            ((one.stack, "these calls are lost"), (step.stack, "the next step comes here")),
            Level.ERROR if short else Level.NOTE,
        )

    def _dropped(self, seen: _LostCalls) -> list[Finding]:
        one, step = seen.last, seen.step
        if one is None or step is None:
            return []
        return self.finding(
            one.cleared,
            f"the gradients of {loss_of(one, 'a backward call')} are cleared every time before a step uses them, so they have no effect",
            "clear the gradients before this backward call, not after it, if the step should use them",
            (
                (one.stack, "the gradients are computed here"),
                (step.stack, "this step uses only gradients added afterwards"),
            ),
            Level.WARNING,
        )


def _comes_first(step: Stack, call: Stack) -> Stack:
    """The frames from the line that makes the step, where it is above the one that makes the backward call."""
    depth = shared_depth(step, call)
    if not depth or step[-depth].line >= call[-depth].line:
        return ()
    mine, theirs = step[-depth], call[-depth]
    loop = syntax.loop(mine.path, mine.line)
    apart = loop is not None and not syntax.in_loop(loop, theirs.line)
    return () if apart else step[-depth:]


def _caller(one: Given) -> Stack:
    """Where a function was called that clears, if the backward call is in another one."""
    own = bool(one.cleared and one.stack) and one.cleared[0].function == one.stack[0].function
    return () if own else one.cleared[1:]


def _line(one: Given) -> _Line:
    return one.stack, one.root, bool(one.foreign)


def _note(
    seen: dict[tuple[_Line, Stack], _LostCalls],
    lost: list[Given],
    step: OptimizerStep,
    used: Mapping[_Line, int] | None = None,
) -> None:
    for one in {(_line(one), one.cleared): one for one in lost}.values():
        before = used.get(_line(one), step.times) - step.times if used else 0
        found = seen.setdefault((_line(one), one.cleared), _LostCalls(before=before))
        found.steps += 1
        found.calls += sum(_line(other) == _line(one) for other in lost)
        found.last, found.step = one, step


def _is_thin(seen: _LostCalls, steps: int) -> bool:
    """Whether it is the rule that calls are lost before a step, from the beginning on or from some point of the run on."""
    if regularly(seen.steps, steps - seen.before, IN_A_ROW):
        return True
    return regularly(seen.steps, steps) or (seen.steps == steps and (seen.steps >= TWICE or seen.calls >= _LOST_CALLS))
