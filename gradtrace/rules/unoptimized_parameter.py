"""A parameter receives gradients, but no optimizer holds it.

Why it matters
    Only what `parameters()` yields gets into an optimizer: not layers in a plain list or dict, a head of the loss that was
    forgotten, a layer that is created within forward, in a function called for each batch or after the optimizer, nor the
    result of `.to()` on a Parameter. They take part and even receive gradients, but keep their first random values. The
    loss falls all the same.

Bad
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 16)
            self.heads = {name: nn.Linear(16, 1) for name in ("price", "area")}

Good
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 16)
            self.heads = nn.ModuleDict({name: nn.Linear(16, 1) for name in ("price", "area")})

The finding is at the line that hides the parameters, or at the optimizer that was not given them. Parameters that are
updated by hand, whose gradient is read, that are in evaluation mode or part of a model that is trained in part on
purpose are not reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from gradtrace.model.events import Event, ParameterReplaced, Unoptimized
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.source import questions, syntax

#: names by which people call networks that are not trained by gradients
_MEANT = re.compile(
    r"target|teacher|ema|momentum|frozen|shadow|pretrain|vgg|lpips|percep|(^|[._])(old|ref|avg)($|[._])", re.IGNORECASE
)
_TELLS = {
    "forward": "{names} {is_} created again in each forward, {gets} one gradient and {is_} thrown away: no optimizer holds "
    "{it}",
    "passing": "{what} is created again at each call, gets one gradient and is thrown away: {optimizer} does not hold it",
    "replaced": "{names} {is_} replaced by another Parameter again and again, while {optimizer} holds the first one, which "
    "the model no longer uses",
    "late": "{gains}, but {was} created after {optimizer}, which does not hold {it}",
    "hidden": "{gains}, but {is_} in no optimizer: `{container}` is no module, and parameters() does not look into it",
    "plain": "{gains}, but {is_} in no optimizer: parameters() yields only Parameters, and no plain tensors",
    "empty group": "{gains}, but {is_} in no optimizer: {optimizer} was given a group without parameters, as an exhausted "
    "generator leaves it",
    "unfrozen": "{names} {is_} trained from this line on and {gets} a gradient in every step, but {optimizer} was created "
    "without {it} while {they} {was} frozen",
    "converted": "the result of this operation is used in place of the parameter, which gets gradients but is in no "
    "optimizer: a module registers only the Parameter itself",
    "copied": "{gains}, while {optimizer} holds other parameters, which get none: {they} {was} created or replaced after it "
    "was given its own",
    "alias": "{gains}, but {optimizer} was given no more than {its} values: tensors that require no grad, as state_dict() "
    "and .data return them, never have a gradient",
    "left out": "{gains}, but {optimizer} was not given {it}",
}
#: how to speak of one and of several
_ONE = {"is_": "is", "was": "was", "gets": "gets", "it": "it", "they": "it", "its": "its"}
_SEVERAL = {"is_": "are", "was": "were", "gets": "get", "it": "them", "they": "they", "its": "their"}
_HELP = {
    "forward": "create it once, in __init__, as an attribute of the module",
    "passing": "create it once, as an attribute of a module whose parameters() the optimizer is given, and pass it to this "
    "function",
    "replaced": "change the values of the parameter that is there: `with torch.no_grad(): parameter.copy_(...)`",
    "late": "create it before the optimizer, or pass its parameters to add_param_group()",
    "hidden": "use nn.ModuleList or nn.ModuleDict (nn.ParameterList, nn.ParameterDict for parameters)",
    "object": "derive the class of `{container}` from nn.Module, and call super().__init__() first in its __init__; or "
    "keep what it holds in attributes of the module",
    "plain": "wrap it: `self.name = nn.Parameter(...)`; or, if it is not to be trained, register_buffer() without "
    "requires_grad",
    "empty group": "call parameters() again for the optimizer, or keep a list: `params = list(model.parameters())`",
    "unfrozen": "add it at this line: `optimizer.add_param_group({{'params': ...}})`, or give the optimizer all parameters: "
    "those that are frozen get no gradient, and it leaves them alone",
    "converted": "convert the data first and wrap it last: `nn.Parameter(data.to(dtype))`",
    "copied": "create the optimizer after the model has its final parameters, or create another one then",
    "alias": "give the optimizer the parameters themselves: `model.parameters()`",
    "left out": "give {it} to the optimizer as well: `[*model.parameters(), *{root}.parameters()]`; or set "
    "requires_grad_(False) on {it}",
}


class UnoptimizedParameter(Rule):
    id = "unoptimized-parameter"
    level = Level.ERROR
    hears = (ParameterReplaced, Unoptimized)
    needs = Needs(calls=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, ParameterReplaced):
            return self._replaced(event)
        if not isinstance(event, Unoptimized) or any(_MEANT.search(name) for name in event.names):
            return []
        number = _SEVERAL if event.count > 1 else _ONE
        words = number | {
            "names": _names(event),
            "gains": f"{_names(event)} {number['gets']} a gradient in every step",
            "optimizer": event.optimizer or "the optimizer",
            "container": event.container,
            "root": event.container or "head",
            "what": f"`{event.kind}`" if event.kind else "this nn.Parameter",
        }
        return self.finding(
            _place(event),
            _TELLS[event.why].format(**words),
            _help(event).format(**words),
            (
                (event.born, "created here"),
                (event.optimizer_stack, f"{words['optimizer']} is created here"),
                (_listing(event.optimizer_stack), "its parameters are put together here"),
                (event.backward, f"this call gives {words['it']} a gradient"),
            ),
        )

    def _replaced(self, event: ParameterReplaced) -> list[Finding]:
        return self.finding(
            event.stack,
            f"`{event.name}` is a Parameter of {event.module}, and is replaced by the result of an operation, which is none",
            f"keep the result in a variable (`{event.name} = ...`), or change the values under torch.no_grad() with an "
            f"in-place operation",
            ((event.born, "the parameter is created here"), (event.stack[1:], "called from here")),
        )


def _help(event: Unoptimized) -> str:
    of_object = event.why == "hidden" and any(name.startswith(f"{event.container}.") for name in event.names)
    return _HELP["object" if of_object else event.why]


def _place(event: Unoptimized) -> Stack:
    if event.why in ("hidden", "plain", "unfrozen"):
        return event.holder or event.born or event.optimizer_stack
    lazily = event.why == "late" and any(site.in_module_call for site in event.born)
    if event.why in ("forward", "passing", "replaced", "converted") or lazily:
        return event.born
    return event.optimizer_stack


def _listing(optimizer: Stack) -> Stack:
    """Where the variable is assigned that the optimizer is given, if that is one other line of the same function."""
    made = syntax.statement(*optimizer[0].place) if optimizer else None
    calls = [node for node in ast.walk(made) if isinstance(node, ast.Call)] if made else []
    given = next((node.args[0].id for node in calls if node.args and isinstance(node.args[0], ast.Name)), "")
    line = questions.assigned_at(*optimizer[0].place, given) if given else None
    return (optimizer[0]._replace(line=line, column=None, end_column=None), *optimizer[1:]) if line else ()


def _names(event: Unoptimized) -> str:
    shown = ", ".join(f"`{name}`" for name in event.names[:2]) or "a parameter"
    return shown if len(event.names) <= 2 else f"{shown} and others ({event.count} parameters)"
