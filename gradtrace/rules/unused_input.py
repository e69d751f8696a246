"""autograd.grad is called with respect to a tensor that the output was not computed from.

Why it matters
    A clone, a slice or a detached copy made after the forward pass is a new tensor: the loss was computed from the old
    one, and has no gradient with respect to the new one. torch raises an error that does not name the input, or returns
    None with allow_unused=True.

Bad
    weight = model[0].weight
    loss = loss_fn(model(x), y)
    (slope,) = torch.autograd.grad(loss, weight.clone())

Good
    weight = model[0].weight
    loss = loss_fn(model(x), y)
    (slope,) = torch.autograd.grad(loss, weight)

The finding is at the line that makes the tensor, cuts the path from it, or sets requires_grad too late; else at the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Event, UnusedInput
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.cuts import fix, operation
from gradtrace.rules.judging.intent import has_answer
from gradtrace.rules.judging.naming import expression
from gradtrace.source import questions, syntax

#: what gives another tensor with the same values, or a part of them
_COPYING = ("clone", "view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "to", "float", "double")


class UnusedInputRule(Rule):
    id = "unused-input"
    level = Level.ERROR
    events = (UnusedInput,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, UnusedInput) or event.error is None:
            return []
        if has_answer(event.stack):
            return []
        root = expression(event.stack, questions.root_of(event.stack[0]) if event.stack else "")
        name = _input(event)
        if event.cut is not None:
            return self._found(
                event,
                event.cut.stack,
                f"{root} has no gradient with respect to {name}: {operation(event.cut)} cuts the path",
                fix(event.cut),
            )
        if event.made:
            return self._made(event, root, name)
        if event.required:
            return self._found(
                event,
                event.required,
                f"{root} has no gradient with respect to {name}: it was computed before {name} was set to require grad",
                f"set requires_grad on {name} before the forward pass",
            )
        return self._found(
            event,
            event.stack,
            f"{root} does not depend on {name}, and has no gradient with respect to it",
            f"compute {root} from {name}, or remove {name} from the inputs; with allow_unused=True its gradient is None",
        )

    def _made(self, event: UnusedInput, root: str, name: str) -> list[Finding]:
        source = _source(event)
        if not event.beside:
            what = f"{root} was not computed from {name}, which {event.op} returns"
        else:
            what = f"{root} was not computed from {name}: {event.op} returns a new tensor, not the one that the forward pass used"
        if source and f"`{source}`" != name:
            instead = f"compute the gradient with respect to `{source}` itself"
        else:
            instead = f"move this line before the forward pass, and compute {root} from {name}"
        return self._found(event, event.made, what, instead)

    def _found(self, event: UnusedInput, stack: Stack, message: str, help: str) -> list[Finding]:
        return self.finding(
            stack,
            message,
            help,
            ((event.stack, "the gradient is computed here"), (stack[1:], "called from here")),
        )


def _input(event: UnusedInput) -> str:
    """The input in the user's words."""
    found = _given(event)
    if isinstance(found, (ast.List, ast.Tuple)) and len(found.elts) == event.count:
        return f"`{ast.unparse(found.elts[event.index])}`"
    if event.name:
        return f"`{event.name}`"
    if found is None:
        return "this input"
    return f"`{ast.unparse(found)}`" if event.count == 1 else f"input {event.index} of `{ast.unparse(found)}`"


def _given(event: UnusedInput) -> ast.expr | None:
    """The expression for the inputs of the call."""
    found = syntax.call(event.stack[0], ("grad",)) if event.stack else None
    if found is None:
        return None
    named = [word.value for word in found.keywords if word.arg == "inputs"]
    return next(iter([*named, *found.args[1:2]]), None)


def _source(event: UnusedInput) -> str:
    """What the input was copied from, `w` of `w.clone()` and `w[0]`; empty where it was computed in another way."""
    site = event.made[0]
    call = syntax.call_at(site)
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in _COPYING:
        return ast.unparse(call.func.value)
    part = syntax.subscript_at(site)
    return ast.unparse(part.value) if part is not None else ""
