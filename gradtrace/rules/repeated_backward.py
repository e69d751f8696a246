"""The same loss is backpropagated twice without clearing the gradients in between.

Why it matters
    With retain_graph=True a second backward() on the same loss works, and adds the same gradient again: every leaf gets
    twice its gradient, as if the learning rate were doubled.

Bad
    loss = loss_fn(model(x), y)
    loss.backward(retain_graph=True)
    print(model[0].weight.grad.norm())
    loss.backward()

Good
    loss = loss_fn(model(x), y)
    loss.backward()
    print(model[0].weight.grad.norm())

Repeated calls whose gradients no step uses (a timing measurement) are fine.
For a second derivative use torch.autograd.grad(..., create_graph=True), which does not touch .grad.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from gradtrace.model.events import Backward, Event, Step
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import PENDING
from gradtrace.rules.judging.naming import expression, names_of


class RepeatedBackward(Rule):
    id = "repeated-backward"
    level = Level.ERROR
    events = (Backward, Step)
    needs = Needs(calls=2)

    def __init__(self) -> None:
        #: calls of one line over and over, by number: who measures how long backward takes does so too
        self._pending: OrderedDict[int, list[Finding]] = OrderedDict()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Step):
            return self._used(event) if self._pending else []
        if not isinstance(event, Backward) or not event.repeated:
            return []
        found = self._found(event)
        if event.stack != event.repeated_stack:
            return found
        self._pending[event.number] = found
        if len(self._pending) > PENDING:
            self._pending.popitem(last=False)
        return []

    def _used(self, event: Step) -> list[Finding]:
        used = {one.call for use in event.uses for one in use.contributions}
        return [finding for number in used & self._pending.keys() for finding in self._pending.pop(number)]

    def _found(self, event: Backward) -> list[Finding]:
        names = names_of(event.repeated, len(event.repeated))
        get, their = ("gets", "its") if len(event.repeated) == 1 else ("get", "their")
        return self.finding(
            event.stack,
            f"{expression(event.stack, event.root)} is backpropagated a second time, so {names} {get} twice {their} "
            "gradient",
            "call backward() once, or clear the gradients between the two calls",
            ((event.repeated_stack, "this is the first call"),),
        )
