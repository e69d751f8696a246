"""A tensor that was saved for backward is modified in place before the backward call.

Why it matters
    Many operations save their input or output for backward: a product its factors, sigmoid its result, a linear
    layer its weight. Modifying one of them before backward (`x += y`, `x[i] = y`, nn.ReLU(inplace=True), an update of a
    buffer, optimizer.step()) makes backward fail with "one of the variables needed for gradient computation has been
    modified by an inplace operation", which names neither the write nor the operation.

Bad
    prob = torch.sigmoid(model(x))
    prob[~known] = 0.5
    prob.log().sum().backward()

Good
    prob = torch.sigmoid(model(x))
    prob = torch.where(known, prob, 0.5)
    prob.log().sum().backward()

The finding is at the first write after the operation saved the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Event, Overwritten
from gradtrace.model.finding import SAVED_VALUES, Finding, Level, Needs
from gradtrace.model.site import Site
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import Carried, carrier, constructed
from gradtrace.rules.judging.naming import request, what_was_saved, writing
from gradtrace.source import syntax

_FIXES = {
    "inplace=True": "use inplace=False: backward still needs the original input of this module",
    "max_norm": "max_norm rescales the embedding weight in place: do the lookup before the weight is used otherwise, or use a copy of "
    "the weight there (`.clone()`)",
    "out=": "remove out= and assign the result instead: backward still needs the tensor that out= overwrites",
    "step": "call backward before this step, or run the forward pass again after it; detach() tensors that are carried over "
    "from before the step",
}


class InplaceSaved(Rule):
    id = "inplace-saved"
    level = Level.ERROR
    events = (Overwritten,)
    needs = Needs(abilities=(SAVED_VALUES,))

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Overwritten) or event.error is None:
            return []
        if not event.written:
            return self._unseen(event)
        carried = carrier(event.entry, event.built) if event.entry else None
        if carried is not None:
            return self._carried(event, carried)
        cause = constructed(event.module) or event.written
        return self.finding(
            cause,
            f"{writing(cause)} overwrites {what_was_saved(event)}, so {request(event)} fails",
            _fix(event),
            (
                (event.written, "this line overwrites the tensor"),
                (event.built, "this operation saved the tensor"),
                (event.stack, f"{request(event)} needs the original values"),
                (event.written[1:], "called from here"),
                (event.built[1:], "called from here"),
            ),
        )

    def _carried(self, event: Overwritten, carried: Carried) -> list[Finding]:
        """A tensor computed from the parameters before a step is carried into the next iteration."""
        kept = " and ".join(f"`{name}`" for name in carried.names)
        return self.finding(
            carried.stack,
            f"{kept} still {'belongs' if len(carried.names) == 1 else 'belong'} to a graph from before {writing(event.written)}, "
            f"which overwrites {what_was_saved(event)}, so {request(event)} fails",
            f"detach before the next iteration: {carried.detached()}",
            (
                (event.written, "this line overwrites the tensor"),
                (event.built, "this operation saved the tensor"),
                (event.entry, "the new computation uses the old graph here"),
                (event.stack, f"{request(event)} needs the original values"),
                (carried.stack[1:], "called from here"),
            ),
        )

    def _unseen(self, event: Overwritten) -> list[Finding]:
        return self.finding(
            event.built or event.stack,
            f"an unknown write overwrites {what_was_saved(event)}, so {request(event)} fails",
            "pass a copy to this operation (`.clone()`), or do not write to the tensor before the backward call",
            ((event.stack, f"{request(event)} needs the original values"),),
        )


def _fix(event: Overwritten) -> str:
    if event.how in _FIXES:
        return _FIXES[event.how]
    if event.no_grad:
        return (
            "move this update after the backward call, or pass the operation that saved the tensor a copy (`.clone()`)"
        )
    return _out_of_place(event.written[0]) or "write out of place, or write to a copy (`.clone()`)"


def _out_of_place(site: Site) -> str | None:
    """What to type instead of the statement."""
    instead: ast.expr
    match syntax.statement(site.path, site.line, site.column):
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as written, op=operator, value=value):
            instead = ast.BinOp(written, operator, value)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name() as written, attr=name), args=args, keywords=words)
        ):
            instead = ast.Call(ast.Attribute(written, name.rstrip("_")), args, words)
        case ast.Assign(targets=[ast.Subscript(value=written)]) | ast.AugAssign(target=ast.Subscript(value=written)):
            whole = ast.unparse(written)
            return (
                f"create a new `{whole}` instead of writing into it: torch.where for a mask, a list and torch.stack or "
                f"torch.cat for rows; or write into a copy (`{whole}.clone()`)"
            )
        case _:
            return None
    return f"write out of place: `{ast.unparse(written)} = {ast.unparse(instead)}`"
