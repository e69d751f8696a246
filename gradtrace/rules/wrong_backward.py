"""The backward of a custom Function does not compute the derivative of its forward (only with --gradcheck).

Why it matters
    autograd trusts whatever a custom backward returns. If grad_output, a factor or a term is missing, all parameters before
    the Function are trained in a direction unrelated to the loss, without any error.

Bad
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x

    for x, y in data:
        optimizer.zero_grad()
        loss_fn(Square.apply(model(x)), y).backward()
        optimizer.step()

Good
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x

    for x, y in data:
        optimizer.zero_grad()
        loss_fn(Square.apply(model(x)), y).backward()
        optimizer.step()

`gradtrace check --gradcheck` repeats the first calls of each Function in float64, on the same inputs, and compares directional
derivatives along random directions. The finding is at the return of the backward. Not reported are Functions whose forward
returns its input (they reverse, scale or clip gradients), whose forward is piecewise constant (straight-through estimators), or
that are not differentiable near that input.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.truths import WrongBackward
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import returned
from gradtrace.source import syntax


class WrongBackwardRule(Rule):
    id = "wrong-backward"
    level = Level.ERROR
    events = (WrongBackward,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, WrongBackward) or not event.backward:
            return []
        site = event.backward[0]
        ignores = _unread_gradient(site.path, site.line)
        why = f": it never reads `{ignores}`" if ignores else ""
        return self.finding(
            returned(event.backward).stack,
            f"the backward of `{event.function}` is wrong for input {event.index}{why}; along a random direction it gives "
            f"{event.given}, but finite differences of the forward give {event.slope}",
            f"multiply by `{ignores}`: backward returns the gradient of the loss, not the derivative of the forward"
            if ignores
            else "derive the backward again from the forward, and check it with torch.autograd.gradcheck in float64",
            ((event.forward, "the forward is defined here"),),
        )


def _unread_gradient(path: str, line: int) -> str:
    """The parameter of a backward with one gradient, if its body never reads it; else empty."""
    return syntax.unread_parameter(path, line, position=1)
