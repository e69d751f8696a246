"""The same loss is backpropagated twice into gradients that nobody cleared in between.

Why it bites
    With retain_graph=True a second backward() on the same loss works, and adds the same gradient once more: every
    leaf gets twice its gradient, as if the learning rate had doubled.

Bad
    loss = loss_fn(model(x), y)
    loss.backward(retain_graph=True)
    print(model[0].weight.grad.norm())
    loss.backward()

Good
    loss = loss_fn(model(x), y)
    loss.backward()
    print(model[0].weight.grad.norm())

For a second derivative use torch.autograd.grad(..., create_graph=True), which does not touch .grad.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Backward, Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression


class RepeatedBackward(Rule):
    id = "repeated-backward"
    level = Level.ERROR
    hears = (Backward,)
    needs = Needs(calls=2)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Backward) or not event.repeated:
            return []
        names = ", ".join(f"`{name}`" for name in event.repeated[:2])
        more = f" and {len(event.repeated) - 2} more" if len(event.repeated) > 2 else ""
        return self.finding(
            event.stack,
            f"{expression(event.stack, event.root)} is backpropagated a second time, so that the gradient of {names}{more} "
            "counts twice",
            "call backward once, or clear the gradients between the two calls",
            ((event.repeated_stack, "the first call on the same root"),),
        )
