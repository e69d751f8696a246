"""The last window of an accumulation sums fewer backward calls than it is divided by.

Why it matters
    If each loss is divided by the size of a full window, a shorter window at the end of an epoch gives a gradient that is
    too small: its samples count for less than all others.

Bad
    for epoch in range(3):
        for i, (x, y) in enumerate(batches(7)):
            loss = loss_fn(model(x), y) / 3
            loss.backward()
            if (i + 1) % 3 == 0 or i == 6:
                optimizer.step()
                optimizer.zero_grad()

Good
    for epoch in range(3):
        for i, (x, y) in enumerate(batches(7)):
            loss = loss_fn(model(x), y) / (1 if i == 6 else 3)
            loss.backward()
            if (i + 1) % 3 == 0 or i == 6:
                optimizer.step()
                optimizer.zero_grad()

The finding is at the step, and a note: many people accept the smaller step. It is reported only if the loss is divided by a
constant in the function that calls backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradtrace.model.events import End, Event, OptimizerStep
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import REGULARLY
from gradtrace.source import stepping

#: share of the windows that makes a size the usual one: the last of a short epoch has another
_SHARE = 0.6


@dataclass(slots=True)
class _Windows:
    """How many backward calls the steps of one optimizer sum."""

    sizes: Counter[int] = field(default_factory=Counter)
    short: OptimizerStep | None = None
    broken: bool = False


class UnevenAccumulation(Rule):
    id = "uneven-accumulation"
    level = Level.NOTE
    events = (OptimizerStep, End)
    needs = Needs(calls=4, steps=3)

    def __init__(self) -> None:
        self._of: dict[int, _Windows] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, OptimizerStep):
            self._count(self._of.setdefault(event.key, _Windows()), event)
        elif isinstance(event, End):
            return [finding for one in self._of.values() for finding in self._judge(one)]
        return []

    def _count(self, of: _Windows, step: OptimizerStep) -> None:
        of.broken |= bool(step.lost) or step.stale or bool(step.again)
        if len({one.stack for one in step.given}) != 1:
            return
        size = len(step.given)
        of.sizes[size] += step.times
        if of.short is None or size < len(of.short.given):
            of.short = step

    def _judge(self, of: _Windows) -> list[Finding]:
        if not of.sizes or of.short is None or of.broken:
            return []
        usual, times = of.sizes.most_common(1)[0]
        size = len(of.short.given)
        if times < REGULARLY or times < _SHARE * of.sizes.total() or max(of.sizes) > usual or size == usual:
            return []
        one = of.short.given[-1]
        divisor = stepping.divided_by(one.stack[0], one.root) if one.stack else ""
        if not divisor:
            return []
        return self.finding(
            of.short.stack,
            f"this step sums {size} backward call{'s' * (size > 1)} where others sum {usual}, and each loss is divided by "
            f"`{divisor}`: the samples of this window count for less",
            "divide by the number of batches that the window really has, or skip the short window",
            ((one.stack, "the loss is backpropagated here"),),
        )
