"""backward() or autograd.grad() is called on a tensor of many elements, without a gradient argument.

Why it matters
    Only for a scalar is the initial gradient clear: 1. A loss with reduction="none", a vector of losses or a whole output
    needs a reduction first, or a gradient of its own shape.

Bad
    loss = F.mse_loss(model(x), y, reduction="none")
    loss.backward()

Good
    loss = F.mse_loss(model(x), y, reduction="none").mean()
    loss.backward()

The finding is at the call.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, Misfit
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import expression
from gradtrace.source import syntax


class NonScalarBackward(Rule):
    id = "nonscalar-backward"
    level = Level.ERROR
    events = (Misfit,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Misfit) or event.kind != "nonscalar" or not event.stack:
            return []
        root = expression(event.stack, event.root)
        name = event.root if event.root.isidentifier() else "loss"
        by_grad = syntax.call(event.stack[0], ("grad",)) is not None
        shape = f" of shape {event.given}" if event.given else ""
        return self.finding(
            event.stack,
            f"{root}{shape} is not a scalar, and this call passes no gradient for it",
            f"reduce {root} first ({name}.mean() or {name}.sum()), or pass a gradient of its shape: "
            f"{f'grad_outputs=torch.ones_like({name})' if by_grad else f'{name}.backward(torch.ones_like({name}))'} does what "
            "sum() does",
            ((event.made, f"{root} was computed here"), (event.stack[1:], "called from here")),
        )
