"""An optimizer steps repeatedly without new gradients.

Why it matters
    A step that uses the same gradients as the previous step moves twice in the same direction, as if the learning rate
    were doubled. A step without any gradient does nothing, although the code suggests otherwise.

Bad
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.step()  # once more, with the same gradients

Good
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Steps of an optimizer whose parameters are all frozen are reported as well. A single step without gradients, as before a
scheduler, is not reported; nor are optimizers that pause in some phases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradtrace.model.events import End, Event, OptimizerStep, Step
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import switched_by
from gradtrace.rules.judging.evidence import FOLLOWED, IN_A_ROW, REGULARLY, mostly, oldest_beyond, regularly
from gradtrace.rules.judging.naming import receiver, step_call


@dataclass(slots=True)
class _StepLine:
    """The steps of one optimizer on one line."""

    steps: int = 0
    again: int = 0
    empty: int = 0
    #: of these: how many had backward calls before them, while no parameter required grad
    frozen: int = 0
    #: of the steps that used their gradients again: how many in a row, now and at most
    row: int = 0
    longest: int = 0
    last: OptimizerStep | None = None


class StepWithoutGrad(Rule):
    id = "step-without-grad"
    level = Level.WARNING
    events = (OptimizerStep, Step, End)
    needs = Needs(steps=REGULARLY)

    def __init__(self) -> None:
        self._lines: dict[tuple[int, Stack], _StepLine] = {}
        #: optimizers that a backward call has given gradients to
        self._fed: dict[int, bool] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Step):
            return self._closure(event)
        if isinstance(event, OptimizerStep):
            self._count(event)
            return [finding for line in oldest_beyond(FOLLOWED, self._lines) for finding in self._judge(line)]
        if isinstance(event, End):
            return [finding for line in self._lines.values() for finding in self._judge(line)]
        return []

    def _count(self, step: OptimizerStep) -> None:
        line = self._lines.setdefault((step.key, step.stack), _StepLine())
        line.steps += step.times
        line.again += bool(step.again)
        line.row = line.row + 1 if step.again else 0
        line.longest = max(line.longest, line.row)
        # what was cleared before the step is another fault; without any backward call a schedule may be tried out
        line.empty += step.empty and not step.lost
        line.frozen += step.empty and step.frozen and step.calls > 0
        if step.again or step.empty:
            line.last = step
        if step.given:
            self._fed[step.key] = True
            oldest_beyond(FOLLOWED, self._fed)

    def _judge(self, line: _StepLine) -> list[Finding]:
        step = line.last
        if step is None:
            return []
        if line.frozen >= REGULARLY and line.frozen == line.steps:
            return self._frozen(line, step)
        if step.key not in self._fed:
            return []
        if regularly(line.again, line.steps) or line.longest >= IN_A_ROW:
            return self._again(line, step)
        if line.empty >= REGULARLY and line.empty == line.steps:
            return self._empty(line, step)
        return []

    def _closure(self, step: Step) -> list[Finding]:
        """L-BFGS evaluates its closure several times a step, and needs the gradient of each evaluation."""
        if step.optimizer != "LBFGS" or step.evaluations < 2 or step.calls_inside:
            return []
        return self.finding(
            step.stack,
            f"this step evaluates its closure {step.evaluations} times, but the closure makes no backward call: each "
            "evaluation sees the same loss and the same gradients",
            "do all of it in the closure: zero the gradients, compute the loss, call backward(), and return the loss",
            level=Level.ERROR,
        )

    def _again(self, line: _StepLine, step: OptimizerStep) -> list[Finding]:
        return self.finding(
            step.stack,
            f"{line.again} of {line.steps} calls of `{step_call(step)}` use the gradients that the previous step already "
            f"used: no backward call added to them in between{_late(line)}",
            "make one step per backward call, and clear the gradients after it",
            ((step.again, "this step already used them"),),
        )

    def _frozen(self, line: _StepLine, step: OptimizerStep) -> list[Finding]:
        """Where others train, this may be a stage: the parameters are thawed later."""
        return self.finding(
            switched_by(step.frozen_at) or step.stack,
            f"none of {line.steps} calls of `{step_call(step)}` changes anything: no parameter that this "
            f"`{step.optimizer}` holds requires grad",
            "pass the parameters that should be trained to the optimizer, or set requires_grad=True on the ones it holds",
            ((step.stack, "this step changes nothing"),),
            Level.NOTE if self._fed else None,
        )

    def _empty(self, line: _StepLine, step: OptimizerStep) -> list[Finding]:
        return self.finding(
            step.stack,
            f"none of {line.steps} calls of `{step_call(step)}` finds a gradient: another step has used the gradients, and "
            "they are cleared before this one",
            f"remove this step, or move it between the backward call and `{receiver(step.stack) or step.optimizer}.zero_grad()`",
        )


def _late(line: _StepLine) -> str:
    return "" if mostly(line.again, line.steps) else f", {line.longest} times in a row"
