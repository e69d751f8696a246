"""A learning rate scheduler is stepped at the wrong time: for each micro-batch, before the optimizer, or never.

Why it matters
    A scheduler counts its own steps. Stepped for each micro-batch instead of each update, it reaches its end long before
    training does, and the rest of training uses the last learning rate, often 0. Stepped before the first optimizer.step(),
    it skips its first value. A scheduler that is created and never stepped leaves the learning rate unchanged.

Bad
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=4)
    for epoch in range(5):
        for i, (x, y) in enumerate(data):
            loss_fn(model(x), y).backward()
            if i % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()

Good
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=10)
    for epoch in range(5):
        for i, (x, y) in enumerate(data):
            loss_fn(model(x), y).backward()
            if i % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()

The finding is at the scheduler's step. For micro-batches it is a warning where the schedule reached its end, else a note: a
schedule may count batches on purpose. Schedulers that are passed the epoch, or that another one steps, are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.truths import Schedule
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import REGULARLY, TWICE, mostly
from gradtrace.source import stepping

#: optimizer steps of a run in which the schedule makes none
_NEVER = 8
#: share of the optimizer's steps with a rate of 0 that a schedule leaves when it has run out
_RUN_OUT = 0.25


class SchedulerSteps(Rule):
    id = "scheduler-steps"
    level = Level.WARNING
    events = (Schedule,)
    needs = Needs(steps=2)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Schedule) or event.steps < REGULARLY:
            return []
        if event.windows >= REGULARLY and mostly(event.crowded, event.windows):
            return self._crowded(event)
        # to take up a schedule where a checkpoint left it takes a line of its own
        if event.early == 1 and event.stepped >= TWICE and not event.scaled:
            return self._early(event)
        if not event.stepped and event.steps >= _NEVER and event.complete:
            return self._never(event)
        return []

    def _crowded(self, event: Schedule) -> list[Finding]:
        run_out = event.idle >= _RUN_OUT * event.steps
        rest = (
            f": the schedule reaches its end too early, and the last {event.idle} of {event.steps} steps have the learning rate 0"
            if run_out
            else ""
        )
        return self.finding(
            event.place,
            f"`{event.scheduler}` is stepped {event.stepped} times, once for each micro-batch, but `{event.optimizer}` makes "
            f"only {event.steps} steps{rest}",
            "step the scheduler right after optimizer.step(), under the same condition"
            + ("" if run_out else "; if the schedule should count micro-batches, leave it as it is"),
            ((event.made, "the scheduler is created here"),),
            None if run_out else Level.NOTE,
        )

    def _early(self, event: Schedule) -> list[Finding]:
        return self.finding(
            event.place,
            f"`{event.scheduler}` is stepped before `{event.optimizer}` has made its first step: the first value of the "
            "schedule is skipped, and each later one comes a step too early",
            "call scheduler.step() after optimizer.step(), not before",
            ((event.made, "the scheduler is created here"),),
        )

    def _never(self, event: Schedule) -> list[Finding]:
        name = stepping.given_name(*event.made[0].place) if event.made else ""
        return self.finding(
            event.made,
            f"`{name or event.scheduler}` is never stepped: the learning rate keeps its initial value in all "
            f"{event.steps} steps of `{event.optimizer}`",
            f"call `{name or 'scheduler'}.step()` after each optimizer.step(), or after each epoch",
            # a later epoch, or a condition, may step it
            level=Level.NOTE if not name or _is_stepped(event, name) else None,
        )


def _is_stepped(event: Schedule, name: str) -> bool:
    """Whether the file that makes the scheduler steps something that may be it, or hands it on."""
    path = event.made[0].path
    last = name.rpartition(".")[2]
    steps = stepping.step_calls(path)
    return any(
        one.receiver.rpartition(".")[2] == last or stepping.is_scheduler(one.receiver) for one in steps
    ) or stepping.is_handed_on(path, name, event.made[0].line)
