"""Gradients are clipped at a point where clipping affects no step.

Why it matters
    clip_grad_norm_() changes the gradients that exist. Before backward() there are none, after step() they have already
    been used, and while they are scaled by a GradScaler the limit is compared with the scaled norm. Training runs
    unclipped, and diverges when clipping would have helped.

Bad
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        clip_grad_norm_(model.parameters(), 1.0)
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

With a GradScaler, call scaler.unscale_(optimizer) first. A limit so high that the call only measures the norm is not
reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradtrace.model.events import Clipped, End, Event, OptimizerStep, Unstepped
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import TWICE, mostly, regularly
from gradtrace.rules.judging.naming import names_of


@dataclass(slots=True)
class _ClippingLine:
    """The clippings of one line."""

    fates: Counter[str] = field(default_factory=Counter)
    last: dict[str, Clipped] = field(default_factory=dict)


class LateClip(Rule):
    id = "late-clip"
    level = Level.ERROR
    events = (Clipped, OptimizerStep, Unstepped, End)
    needs = Needs(steps=2)

    def __init__(self) -> None:
        self._lines: dict[Stack, _ClippingLine] = {}
        #: steps of each optimizer
        self._steps: Counter[int] = Counter()
        #: names of leaves whose optimizer never made a step: that is the fault, wherever they are clipped
        self._idle: set[str] = set()
        #: where all gradients were cleared before a step: that is the fault
        self._starving: set[Stack] = set()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Clipped):
            line = self._lines.setdefault(event.stack, _ClippingLine())
            line.fates[event.fate] += 1
            line.last[event.fate] = event
        elif isinstance(event, OptimizerStep):
            self._steps[event.key] += event.times
            self._starving.update(one.cleared[:1] for one in event.lost if event.empty)
        elif isinstance(event, Unstepped):
            self._idle.update(event.given.leaves)
        elif isinstance(event, End):
            return [finding for line in self._lines.values() for finding in self._judge(line)]
        return []

    def _judge(self, line: _ClippingLine) -> list[Finding]:
        total = line.fates.total()
        if regularly(line.fates["scaled"], total, TWICE):
            return self._scaled(line.last["scaled"])
        if total < TWICE or line.fates["used"] or line.fates["scaled"]:
            return []
        fate, _ = line.fates.most_common(1)[0]
        clip = line.last[fate]
        # where another line clips for each step, this one only measures
        steps = max(total, min(self._steps.values(), default=0))
        if clip.leaves and mostly(self._clipped_in_time(line, clip.leaves[0]), steps):
            return []
        if fate == "never":
            return self._never(clip) if total > TWICE else []
        if fate == "none":
            return self._none(clip)
        if fate == "cleared" and (clip.then[:1] in self._starving or not self._idle.isdisjoint(clip.leaves)):
            return []
        return {"empty": self._empty, "spent": self._spent, "cleared": self._cleared}[fate](clip)

    def _never(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} is passed {clip.count} parameters that never have a gradient, so the gradients that "
            "the step uses are not clipped",
            "pass the parameters of the model that you train",
            level=Level.WARNING,
        )

    def _none(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} is passed no parameters, so the step uses the gradients unclipped",
            "call model.parameters() again in this line, or keep a list: a generator yields its parameters only once, and "
            "the optimizer has exhausted it",
            level=Level.WARNING,
        )

    def _clipped_in_time(self, line: _ClippingLine, leaf: str) -> int:
        """How often other lines have clipped the leaf in time."""
        others = [one for one in self._lines.values() if one is not line and "used" in one.last]
        return sum(one.fates["used"] for one in others if leaf in one.last["used"].leaves)

    def _empty(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} runs before the backward call, when there are no gradients to clip, so the step uses them "
            "unclipped",
            f"move {_moved(clip)} between backward() and step()",
        )

    def _spent(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} runs after the step has used the gradients unclipped, and before they are cleared",
            f"move {_moved(clip)} between backward() and step()",
            ((clip.then, "this step used the gradients"),),
        )

    def _cleared(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} clips gradients of {names_of(clip.leaves, clip.count)} that are cleared before any step "
            "uses them",
            "pass the parameters of the optimizer that makes the next step, and clip between backward() and step()",
            ((clip.then, "the gradients are cleared here"),),
            Level.WARNING,
        )

    def _scaled(self, clip: Clipped) -> list[Finding]:
        return self.finding(
            clip.stack,
            f"{_what(clip)} clips gradients that are still multiplied by the GradScaler's scale, so the limit is "
            "far too low for them",
            "call scaler.unscale_(optimizer) before clipping",
            ((clip.then, "the scale is removed only later"),),
        )


def _moved(clip: Clipped) -> str:
    return f"`{clip.op}`" if clip.op else "this line"


def _what(clip: Clipped) -> str:
    return f"`{clip.op}`" if clip.op else "this scaling of gradients"
