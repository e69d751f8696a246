"""An optimizer makes no step in the whole run, though gradients are computed for its parameters.

Why it matters
    backward() fills .grad, and only step() changes a parameter. If step() never runs, because the call is missing or its
    condition is never true, the model keeps its initial values, without any error.

Bad
    window = 8
    for epoch in range(3):
        for i, (x, y) in enumerate(data):  # 4 batches: i + 1 never reaches 8
            loss_fn(model(x), y).backward()
            if (i + 1) % window == 0:
                optimizer.step()
                optimizer.zero_grad()

Good
    window = 2
    for epoch in range(3):
        for i, (x, y) in enumerate(data):
            loss_fn(model(x), y).backward()
            if (i + 1) % window == 0:
                optimizer.step()
                optimizer.zero_grad()

The finding is at the condition that was never true, else at the backward call. Runs that end early, by --steps or by an
error, are not judged. It is a note where a later epoch may make the step, where your own code reads the gradients, where a
GradScaler may have skipped each step, and where another optimizer's loss only passes through these parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.model.truths import NeverStepped
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import of_file, uncalled
from gradtrace.rules.judging.evidence import REGULARLY
from gradtrace.rules.judging.naming import names_of
from gradtrace.source import stepping


class NeverSteppedRule(Rule):
    id = "never-stepped"
    level = Level.ERROR
    events = (NeverStepped,)
    needs = Needs(calls=REGULARLY)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, NeverStepped) or event.calls < REGULARLY or not event.backward:
            return []
        name = stepping.given_name(*event.made[0].place) if event.made else ""
        call = f"{name or 'optimizer'}.step()"
        what = f"`{call}` never ran" if name else f"no step of `{event.optimizer}` ever ran"
        message = (
            f"{what}: {event.calls} backward calls gave gradients to {names_of(event.names, event.count)}, "
            "and no step used them"
        )
        related = [(event.backward, "the gradients are computed here"), (event.made, "the optimizer is created here")]
        named = uncalled(event.backward, "step")
        if named:
            return self.finding(named, message, f"write `{call}`, with parentheses", related, self._level(event, False))
        found = _unmet(event, name)
        if found is None:
            fix = f"call `{call}` after the backward call, and zero_grad() before the next one"
            return self.finding(event.backward, message, fix, related, self._level(event, False))
        path, step = found
        related.insert(0, (of_file(path, step.line), "this step never ran"))
        return self.finding(
            of_file(path, step.guard),
            f"{message}: `{step.condition}` was never true",
            "make the condition true within an epoch: count over epochs instead of within one, use a smaller window, or "
            "make a step with the remaining gradients at the end of the epoch",
            related,
            self._level(event, True),
        )

    def _level(self, event: NeverStepped, guarded: bool) -> Level:
        if event.scaled or event.read or event.by_the_way == event.calls or (guarded and event.others):
            return Level.NOTE
        return Level.WARNING if event.others else self.level


def _unmet(event: NeverStepped, name: str) -> tuple[str, stepping.StepCall] | None:
    """The call of step that belongs to this optimizer and stands under a condition, where there is but one."""
    for path in event.files:
        calls = [one for one in stepping.step_calls(path) if not stepping.is_scheduler(one.receiver)]
        own = [one for one in calls if name and one.receiver.rpartition(".")[2] == name.rpartition(".")[2]]
        guarded = [one for one in own or calls if one.guard and _below(event.backward, path, one)]
        if len(guarded) == 1 and len(own or calls) == 1:
            return path, guarded[0]
    return None


def _below(backward: Stack, path: str, step: stepping.StepCall) -> bool:
    """Whether a step stands below the backward call, if both are in one file."""
    lines = [site.line for site in backward if site.path == path]
    return bool(lines) and step.line > min(lines)
