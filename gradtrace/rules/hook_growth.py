"""A hook is registered again in every step, so the number of hooks grows.

Why it matters
    A hook stays until its handle's remove() is called. Registered in the loop or in forward, it is added once more in
    each step: steps get slower and slower, gradients are changed several times, and whatever the hooks hold stays alive.

Bad
    for x, y in data:
        model[0].register_forward_hook(log_activation)
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    handle = model[0].register_forward_hook(log_activation)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    handle.remove()

The finding is at the line that registers the hook. A number of hooks that stops growing is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, HooksGrew
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import of_file
from gradtrace.source import questions


class HookGrowth(Rule):
    id = "hook-growth"
    level = Level.WARNING
    events = (HooksGrew,)
    needs = Needs(calls=6)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, HooksGrew):
            return []
        return self.finding(
            event.stack or _registering(event),
            f"`{event.kind}()` is called on `{event.holder}` again and again, and each call adds a hook: `{event.holder}` now has "
            f"{event.hooks}",
            "register the hook once, before the loop, or call handle.remove() when it is no longer needed",
        )


def _registering(event: HooksGrew) -> Stack:
    for path in event.files:
        line = questions.call_of(path, event.kind, event.holder)
        if line:
            return of_file(path, line)
    return ()
