"""Steps of an optimizer change none of its parameters.

Why it matters
    A learning rate of 0, from a typo, a schedule that has reached its end or a warm-up that counts epochs, makes each step a
    no-op. With bfloat16 or float16 parameters, updates that are too small are rounded to zero. The loss varies a little
    from batch to batch, and nothing is learned.

Bad
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 // (step + 2))  # integer division
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        schedule.step()

Good
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 2))
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        schedule.step()

The finding is at the step. A warm-up that starts at 0 and a schedule that ends at 0 are fine: one or two such steps are
not reported, and a few more at the start or end of a run are a note.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import End, Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.truths import NoEffect, Schedule
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import REGULARLY

#: share of all steps from which on a row of them is more than a note
_MUCH = 0.5


class NoEffectStep(Rule):
    id = "no-effect-step"
    level = Level.WARNING
    events = (NoEffect, Schedule, End)
    needs = Needs(steps=REGULARLY)

    def __init__(self) -> None:
        self._rows: list[NoEffect] = []
        #: optimizers whose schedule has run out since it is stepped too often, which another rule reports
        self._overstepped: set[str] = set()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, NoEffect):
            self._rows.append(event)
        elif isinstance(event, Schedule) and event.crowded and event.idle:
            self._overstepped.add(event.optimizer)
        elif isinstance(event, End):
            return [finding for row in self._rows for finding in self._judge(row)]
        return []

    def _judge(self, event: NoEffect) -> list[Finding]:
        if event.when == "end" and event.optimizer in self._overstepped:
            return []
        if event.why == "precision":
            return self._rounded(event)
        which = {
            "always": f"all {event.of} steps",
            "start": f"the first {event.steps} of {event.of} steps",
            "end": f"the last {event.steps} of {event.of} steps",
        }[event.when]
        return self.finding(
            event.stack,
            f"{which} of `{event.optimizer}` change nothing: the learning rate is 0 in every parameter group",
            _HELPS[event.when],
            ((event.made, "the optimizer is created here"), (event.stack[1:], "called from here")),
            None if event.when == "always" or event.steps >= _MUCH * event.of else Level.NOTE,
        )

    def _rounded(self, event: NoEffect) -> list[Finding]:
        return self.finding(
            event.stack,
            f"none of {event.of} steps of `{event.optimizer}` changes a parameter, although there are gradients: the updates "
            f"are too small for {event.dtype} and are rounded to zero",
            "keep the parameters in float32 (use autocast for the forward pass), or raise the learning rate",
            ((event.made, "the optimizer is created here"), (event.stack[1:], "called from here")),
        )


_HELPS = {
    "always": "pass the optimizer a learning rate above 0, or check the schedule that sets it",
    "start": "start the warm-up above 0, for example with (step + 1) / warmup, and count steps instead of epochs",
    "end": "set the schedule to the number of steps that the run really makes, or end training where it reaches 0",
}
