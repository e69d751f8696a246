"""requires_grad is misspelled, or set on a module, and has no effect.

Why it matters
    Tensors and modules accept any attribute without an error. `weight.require_grad = False` freezes nothing, and neither does
    `model.requires_grad = False`: a module has no such attribute, only the method requires_grad_().

Bad
    for parameter in model[0].parameters():
        parameter.require_grad = False
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    for parameter in model[0].parameters():
        parameter.requires_grad = False
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the assignment. Attributes that a module's own methods set on `self` are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.truths import IgnoredAttribute
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import of_file
from gradtrace.rules.judging.naming import names_of
from gradtrace.source import stepping


class MisspeltAttribute(Rule):
    id = "misspelt-attribute"
    level = Level.WARNING
    events = (IgnoredAttribute,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, IgnoredAttribute):
            return []
        own = event.kind == "tensor"
        places = [(path, line) for path in event.files for line in stepping.attribute_lines(path, event.attribute, own)]
        if not places:
            return []
        names = names_of(event.names, event.count)
        return self.finding(
            of_file(*places[0]),
            f"`{event.attribute} = False` has no effect on {names}: "
            + (
                f"{'it still requires' if event.count == 1 else 'they still require'} grad"
                if own
                else "a module has no such attribute, and its parameters still require grad"
            ),
            "write `requires_grad = False`" if own else "call requires_grad_(False) on the module",
            [(of_file(*place), "and here") for place in places[1:3]],
        )
