"""The .grad of a leaf is used before a backward call has filled it.

Why it matters
    .grad is None until a backward call has run, and again after zero_grad(), which sets it to None. Code that scales,
    clips or logs gradients between zero_grad() and backward() finds none, and fails with an error about NoneType. A leaf
    that does not require grad, or that the loss does not depend on, never gets a gradient.

Bad
    for x, y in data:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        for p in model.parameters():
            p.grad.mul_(0.5)
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.grad.mul_(0.5)
        optimizer.step()

The finding is at the line that reads the gradient, if the script fails because of it. Code that checks whether .grad is
None is fine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Event, GradMissing
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Site
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import at_line
from gradtrace.rules.judging.naming import grad_read
from gradtrace.source import syntax

_BACKWARD = ("backward",)


class GradBeforeBackward(Rule):
    id = "grad-before-backward"
    level = Level.ERROR
    events = (GradMissing,)
    needs = Needs(calls=0)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, GradMissing) or event.kind not in _MESSAGES or not event.stack:
            return []
        name = _name(event)
        later = _backward_after(event.stack[0])
        message = _MESSAGES[event.kind].format(name=name)
        fix = _HELP[event.kind].format(name=name, later=f" (line {later})" if later else "")
        return self.finding(
            event.stack,
            message,
            fix,
            (
                (event.cleared, "the gradients are cleared here"),
                (
                    (at_line(event.stack[0], later),) if later else (),
                    f"this backward call fills `{name}.grad`, too late",
                ),
                (event.stack[1:], "called from here"),
            ),
        )


_MESSAGES = {
    "early": "`{name}.grad` is None: no backward call has run before this line",
    "cleared": "`{name}.grad` is None: it was cleared, and no backward call has filled it since",
    "unreached": "`{name}.grad` is None: no backward call before this line reached `{name}`",
    "plain": "`{name}.grad` is None: `{name}` does not require grad, so backward() computes no gradient for it",
}
_HELP = {
    "early": "read `{name}.grad` after `backward()`{later}",
    "cleared": "read `{name}.grad` after `backward()`{later}, or clear the gradients later: right before the next `backward()`",
    "unreached": "read `{name}.grad` after the `backward()`{later} of a loss that depends on `{name}`, or skip it where .grad is None",
    "plain": "call `{name}.requires_grad_()` before the loss is computed from it",
}


def _name(event: GradMissing) -> str:
    """The user's expression on this line; a loop's variable says less than the parameter's own name."""
    expression = grad_read(event.stack[0])
    return event.name or expression or "this tensor"


def _backward_after(site: Site) -> int | None:
    """The first line below `site` in its function that calls backward()."""
    calls = (
        node
        for found in syntax.statements_around(site)
        for node in ast.walk(found)
        if isinstance(node, ast.Call) and syntax.called(node) in _BACKWARD
    )
    return min((node.lineno for node in calls if node.lineno > site.line), default=None)
