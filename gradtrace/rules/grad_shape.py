"""A gradient does not have the shape of its tensor.

Why it matters
    The gradient passed to backward() or autograd.grad() must have the shape of the tensor it is called on; what a
    custom Function's backward returns must have the shapes of forward's inputs. The error of torch names an index, not a line.

Bad
    logits = classifier(x)
    score = (logits * one_hot).sum()
    score.backward(gradient=one_hot)

Good
    logits = classifier(x)
    logits.backward(gradient=one_hot)

The finding is at the call, or at the `return` of the Function's backward.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, Misfit
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import assignment, returned
from gradtrace.rules.judging.naming import expression


class GradShape(Rule):
    id = "grad-shape"
    level = Level.ERROR
    events = (Misfit,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Misfit) or event.kind == "nonscalar":
            return []
        if event.kind == "argument":
            return self._argument(event)
        if event.kind == "assigned":
            return self.finding(
                event.stack,
                f"the assigned .grad has shape {event.given}, but its tensor has shape {event.wanted}",
                f"assign a gradient of shape {event.wanted}",
                ((event.stack[1:], "called from here"),),
            )
        return self._hooked(event) if event.kind == "hook" else self._returned(event)

    def _hooked(self, event: Misfit) -> list[Finding]:
        place, _ = _returning(event)
        return self.finding(
            place or event.made or event.stack,
            f"the hook{'' if event.op.startswith('<') else f' `{event.op}`'} returns a gradient of another shape than the one it received",
            "return a gradient of the same shape (expand_as, unsqueeze), or None to leave the gradient unchanged",
            ((event.made, "the hook is registered here"), (event.stack, "this call runs the hook")),
        )

    def _argument(self, event: Misfit) -> list[Finding]:
        root = expression(event.stack, event.root)
        wanted = "is a single number" if event.wanted == "[]" else f"has shape {event.wanted}"
        fix = (
            f"omit the gradient, or call backward on the tensor that {root} was reduced from"
            if event.wanted == "[]"
            else f"pass a gradient of shape {event.wanted}, or call backward on the tensor of shape {event.given}"
        )
        return self.finding(
            event.stack,
            f"the gradient passed for {root} has shape {event.given}, but {root} {wanted}",
            fix,
            ((event.made, f"{root} was computed here"), (event.stack[1:], "called from here")),
        )

    def _returned(self, event: Misfit) -> list[Finding]:
        place, name = _returning(event)
        function = event.op.removesuffix("Backward") if event.backward else event.op
        if event.kind == "count":
            given, wanted = (
                f"{n} {what}{'s' * (n != '1')}" for n, what in ((event.given, "gradient"), (event.wanted, "input"))
            )
            message = f"backward of `{function}` returns {given} for {wanted} of forward"
            fix = "return one gradient for each input of forward, in order, and None for those without a gradient"
        else:
            what = f"`{name}`" if name else "a gradient"
            message = f"backward of `{function}` returns {what} of shape {event.given} for input {event.index} of shape {event.wanted}"
            transposed = sorted(event.given) == sorted(event.wanted) and event.given != event.wanted
            how = "transpose it" if transposed else "sum over the dimensions that forward broadcast"
            fix = f"return a gradient of shape {event.wanted}, in the order of forward's inputs: {how}"
        made = assignment(place, name)
        return self.finding(
            place or event.made or event.stack,
            message,
            fix,
            (
                (made, f"`{name}` is computed here"),
                (event.made, "the Function is applied here"),
                (event.stack, "this call runs its backward"),
            ),
        )


def _returning(event: Misfit) -> tuple[Stack, str]:
    """The `return` of a custom Function's backward, and the expression that it returns for the input; its `def` where
    that is unknown."""
    found = returned(event.backward)
    # inputs that are no tensors are not counted
    tensors = [value for value in found.values if value != "None"]
    name = tensors[event.index] if event.kind == "function" and event.index < len(tensors) else ""
    return found.stack, name
