"""A hook is registered anew at every step, so that their number grows.

Why it matters
    A hook stays until its handle's remove() is called. Registered in the loop or in forward, there is one more of
    them at each step: the step gets slower and slower, gradients are changed again and again, and what the hooks hold
    stays alive.

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

The finding is at the line that registers the hook. A number of hooks that stops growing is no finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, HooksGrew
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.source import questions


class HookGrowth(Rule):
    id = "hook-growth"
    level = Level.WARNING
    hears = (HooksGrew,)
    needs = Needs(calls=6)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, HooksGrew):
            return []
        return self.finding(
            event.stack or _registering(event),
            f"{event.kind} is called on `{event.holder}` again and again: it has {event.hooks} hooks by now",
            "register the hook once, before the loop, or call handle.remove() when it is done",
        )


def _registering(event: HooksGrew) -> Stack:
    for path in event.files:
        line = questions.call_of(path, event.kind)
        if line:
            return (Site(path, line, ""),)
    return ()
