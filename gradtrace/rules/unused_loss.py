"""A loss is computed in each iteration and never backpropagated.

Why it matters
    A loss trains parameters only if a backward call runs through it. A loss that is overwritten before the call, or that is
    computed and printed while another one is backpropagated, looks like part of the training, but is not.

Bad
    for x, y in data:
        loss = loss_fn(model(x), y)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        loss = loss_fn(model(x), y)
        loss = loss + model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

The finding is at the line that computes the loss. A metric (under no_grad, detached, computed after the step, or over
parameters that other losses train) is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, UnusedLoss
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import in_function_of
from gradtrace.rules.judging.naming import assigned_name, names_of, receiver
from gradtrace.source import questions

#: what the other place of a finding is, by the kind of loss
_WHERE = {
    "overwritten": "another loss is assigned here",
    "sum": "no call reaches this part",
    "starved": "this step finds no gradient",
}

#: a value that a function returns may be ignored on purpose
_LEVELS = {"starved": Level.ERROR, "unread": Level.NOTE}


class UnusedLossRule(Rule):
    id = "unused-loss"
    level = Level.WARNING
    events = (UnusedLoss,)
    needs = Needs(steps=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, UnusedLoss):
            return []
        forgotten = event.kind == "unread" and _is_forgotten(event)
        if event.kind == "unread" and event.read and not forgotten:
            return []
        stack = (in_function_of(event.stack, event.where) or event.stack) if event.kind == "starved" else event.stack
        name = _assigned(stack) or "this loss"
        root = questions.root_of(event.backward[0]) if event.backward else ""
        message, fix = getattr(self, f"_{event.kind}")(event, name, f"`{root}`" if root else "another loss")
        return self.finding(
            stack,
            message,
            fix,
            (
                (event.where, _WHERE.get(event.kind, "")),
                (event.backward, f"this call does not run through {name}"),
                (event.stack, "the loss is computed here"),
                (stack[1:], "called from here"),
            ),
            Level.WARNING if forgotten else _LEVELS.get(event.kind),
        )

    def _overwritten(self, event: UnusedLoss, name: str, root: str) -> tuple[str, str]:
        line = event.where[0].line
        return (
            f"{name} is computed in each iteration and never backpropagated: line {line} overwrites it first",
            f"add the two, or delete the unwanted assignment: line {event.stack[0].line} or line {line}",
        )

    def _sum(self, event: UnusedLoss, name: str, root: str) -> tuple[str, str]:
        part = _assigned(event.where) or "a part of it"
        return (
            f"{name} is computed in each iteration and never backpropagated, only {root} is: {part} trains nothing",
            f"call backward() on {name} in place of {root}; for a value to print, compute it under torch.no_grad()",
        )

    def _unread(self, event: UnusedLoss, name: str, root: str) -> tuple[str, str]:
        return (
            f"{name} is computed in each iteration, and nothing uses it: it is part of no loss that is backpropagated",
            f"add {name if name != 'this loss' else 'it'} to the loss that is backpropagated, or do not compute it",
        )

    def _idle(self, event: UnusedLoss, name: str, root: str) -> tuple[str, str]:
        without = names_of(event.names, len(event.names))
        get = "gets" if len(event.names) == 1 else "get"
        return (
            f"{name} is computed in each iteration and never backpropagated: {without} {get} no gradient",
            f"add {name} to the loss that is backpropagated: `({root.strip('`')} + {name.strip('`')}).backward()`; for a value "
            "to print, compute it under torch.no_grad()",
        )

    def _starved(self, event: UnusedLoss, name: str, root: str) -> tuple[str, str]:
        step = f"{receiver(event.where) or 'optimizer'}.step()"
        return (
            f"{name} is computed in each iteration and never backpropagated: `{step}` finds no gradient and changes nothing",
            f"call backward() on {name} before the step",
        )


def _is_forgotten(event: UnusedLoss) -> bool:
    """Whether a variable that nothing reads holds the loss: where it is computed, or in a function that calls backward."""
    made = event.stack[0]
    if questions.never_read(made) or questions.never_read_in_script(made):
        return True
    backward = {(site.path, site.function) for site in event.backward}
    return any((site.path, site.function) in backward and questions.never_read(site) for site in event.stack)


def _assigned(stack: Stack) -> str:
    name = assigned_name(stack)
    return f"`{name}`" if name else ""
