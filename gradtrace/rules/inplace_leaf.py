"""An in-place write that autograd forbids: to a leaf that requires grad, or to certain views.

Why it matters
    Gradients accumulate in leaves: parameters and other tensors that you created with requires_grad=True. Written to in
    place with gradients on, a leaf would become the result of an operation, so torch raises an error: "a leaf Variable
    that requires grad is being used in an in-place operation". The same goes for a view of a leaf, and for one of several
    views (chunk, unbind).

Bad
    w = torch.zeros(8, 1, requires_grad=True)
    loss_fn(x @ w, y).backward()
    w -= 0.1 * w.grad

Good
    w = torch.zeros(8, 1, requires_grad=True)
    loss_fn(x @ w, y).backward()
    with torch.no_grad():
        w -= 0.1 * w.grad

The finding is at the write.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, Refused
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import writing

_NO_GRAD = (
    "to set or update values, put the write under `with torch.no_grad():`; if gradients should flow through it, write "
    "to a copy (`.clone()`)"
)
_FIXES = {
    "view made under no_grad": "create the view and write to it both under torch.no_grad(), or both outside",
    "one of several views": "write out of place, to a copy (`.clone()`), or into the whole tensor by index instead "
    "of into an output of chunk, split or unbind",
}


class InplaceLeaf(Rule):
    id = "inplace-leaf"
    level = Level.ERROR
    events = (Refused,)
    needs = Needs(calls=0)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Refused):
            return []
        return self.finding(
            event.stack,
            f"{writing(event.stack)} writes in place to {_what(event)}, which autograd forbids",
            _FIXES.get(event.target, _NO_GRAD),
            ((event.viewed, "the view was created here"), (event.stack[1:], "called from here")),
        )


def _what(event: Refused) -> str:
    name = f"`{event.name}`" if event.name else "a parameter" if event.is_parameter else "a tensor"
    if event.target == "leaf":
        return f"{name}, a leaf that requires grad, with gradients on"
    if event.target == "view of a leaf":
        return f"a view of {name}, a leaf that requires grad, with gradients on"
    if event.target == "one of several views":
        return f"one of several views of {name if event.name else 'one tensor'}"
    return "a view created under torch.no_grad(), with gradients on"
