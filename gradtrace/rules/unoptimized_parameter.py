"""A parameter receives gradients, but no optimizer holds it.

Why it matters
    An optimizer holds only what `parameters()` yields: not layers in a plain list or dict, a forgotten loss head, a layer
    that is created within forward, in a function called for each batch or after the optimizer, nor the result of `.to()`
    on a Parameter. Such layers are used and even receive gradients, but keep their initial random values. The loss still
    falls.

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

The finding is at the line that hides the parameters, or at the optimizer that does not hold them. Parameters that are
updated by hand, whose gradient is read, that are in evaluation mode, whose results others are only compared with, or
that are part of a model that is trained in part on purpose are not reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Event, ParameterReplaced, Unoptimized
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import assignment, switched_by
from gradtrace.rules.judging.naming import names_of, spoken_count
from gradtrace.source import syntax

_MESSAGES = {
    "forward": "{names} {is_} created again in each forward, {gets} one gradient and {is_} discarded: no optimizer holds "
    "{it}",
    "passing": "{what} is created again at each call, gets one gradient and is discarded: {optimizer} does not hold it",
    "replaced": "{names} {is_} replaced by another Parameter again and again, while {optimizer} holds the first one, which "
    "the model no longer uses",
    "late": "{gains}, but {was} created after {optimizer}, which does not hold {it}",
    "hidden": "{gains}, but {is_} in no optimizer: `{container}` is not a module, so parameters() skips it",
    "plain": "{gains}, but {is_} in no optimizer: parameters() yields only Parameters, not plain tensors",
    "empty group": "{gains}, but {is_} in no optimizer: {optimizer} was passed a group without parameters, for example "
    "from an exhausted generator",
    "unfrozen": "{names} {is_} trained from this line on and {gets} a gradient in every step, but {optimizer} was created "
    "without {it} while {they} {was} frozen",
    "converted": "the result of this operation is a plain tensor, not a Parameter, so no module registers it: the Parameter "
    "that it is computed from gets a gradient in every step, but is in no optimizer",
    "copied": "{gains}, while {optimizer} holds other parameters, which get none: {they} {was} created or replaced after the "
    "optimizer was created",
    "alias": "{gains}, but {optimizer} was passed only {its} values: tensors that do not require grad, such as those of "
    "state_dict() and .data, never have a gradient",
    "left out": "{gains}, but {optimizer} does not hold {it}",
    "part": "{gains}, but {optimizer}, which holds the other parameters of this model, does not hold {it}",
}
#: how to speak of one and of several
_ONE = {"is_": "is", "was": "was", "gets": "gets", "it": "it", "they": "it", "its": "its"}
_SEVERAL = {"is_": "are", "was": "were", "gets": "get", "it": "them", "they": "they", "its": "their"}
_HELP = {
    "forward": "create it once, in __init__, as an attribute of the module",
    "passing": "create it once, as an attribute of a module whose parameters() you pass to the optimizer, and pass it to this "
    "function",
    "replaced": "change the values of the existing parameter: `with torch.no_grad(): parameter.copy_(...)`",
    "late": "create {it} before {optimizer}, or pass {it} to add_param_group()",
    "hidden": "make `{container}` an {holder}",
    "object": "make the class of `{container}` a subclass of nn.Module, and call super().__init__() first in its __init__; or "
    "store its parameters in attributes of the module",
    "plain": "make it a Parameter: `self.{attribute} = nn.Parameter(...)`; or, if it should not be trained, use "
    "register_buffer() without requires_grad",
    "plain list": "make the tensors Parameters, and keep them in an nn.ParameterList or nn.ParameterDict; or, if they should "
    "not be trained, leave out requires_grad",
    "empty group": "call parameters() again for the optimizer, or keep a list: `params = list(model.parameters())`",
    "unfrozen": "add {it} at this line: `optimizer.add_param_group({{'params': ...}})`, or pass the optimizer all parameters: "
    "frozen ones get no gradient, and it skips them",
    "converted": "convert the data first and then wrap it: `nn.Parameter(data.to(dtype))`",
    "copied": "create the optimizer after the model has its final parameters",
    "alias": "pass the optimizer the parameters themselves: `model.parameters()`",
    "part": "pass {it} to {optimizer} as well, or call requires_grad_(False) on {it}: that saves computing the gradient",
    "left out": "pass {it} to {optimizer} as well: `[*{given}, *{root}]`; or call requires_grad_(False) on {it}",
}


class UnoptimizedParameter(Rule):
    id = "unoptimized-parameter"
    level = Level.ERROR
    events = (ParameterReplaced, Unoptimized)
    needs = Needs(calls=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, ParameterReplaced):
            return self._replaced(event)
        if not isinstance(event, Unoptimized):
            return []
        number = _SEVERAL if event.count > 1 else _ONE
        words = number | {
            "names": _names(event),
            "gains": f"{_names(event)} {number['gets']} a gradient in every step",
            "optimizer": event.optimizer or "the optimizer",
            "container": event.container,
            "root": _root(event),
            "given": _given(event.optimizer_stack, event.optimizer),
            "holder": _holder(event),
            "attribute": event.names[0].rpartition(".")[2] if event.names else "name",
            "what": f"`{event.kind}`" if event.kind else "this nn.Parameter",
        }
        return self.finding(
            _place(event),
            _MESSAGES[event.why].format(**words),
            _help(event).format(**words),
            (
                (
                    event.born,
                    "the parameter was created here" if event.count == 1 else "the parameters were created here",
                ),
                (event.optimizer_stack, f"{words['optimizer']} is created here"),
                (_listing(event.optimizer_stack), f"the parameters for {words['optimizer']} are collected here"),
                (event.backward, f"this backward call computes {number['its']} gradient{'s' * (event.count > 1)}"),
            ),
            Level.NOTE if event.why == "part" else None,  # it may be a choice
        )

    def _replaced(self, event: ParameterReplaced) -> list[Finding]:
        return self.finding(
            event.stack,
            f"`{event.name}` is a Parameter of {event.module}, and is assigned the result of an operation, which is not a Parameter",
            f"keep the result in a variable (`{event.name} = ...`), or change the values under torch.no_grad() with an "
            f"in-place operation",
            ((event.born, "the parameter is created here"), (event.stack[1:], "called from here")),
        )


def _help(event: Unoptimized) -> str:
    of_object = event.why == "hidden" and any(name.startswith(f"{event.container}.") for name in event.names)
    if event.why == "plain" and any(name.endswith("]") for name in event.names):
        return _HELP["plain list"]
    return _HELP["object" if of_object else event.why]


def _root(event: Unoptimized) -> str:
    """What to pass to the optimizer for them: `head.parameters()`, or `[scale]` for a Parameter in a variable."""
    if event.container or not event.names:
        return f"{event.container or 'head'}.parameters()"
    root, _, rest = event.names[0].partition(".")
    return f"{root}.parameters()" if rest else f"[{root}]"


def _given(stack: Stack, optimizer: str) -> str:
    """What the optimizer is passed now, in the user's words, where that is a variable or a call of parameters()."""
    made = syntax.call(stack[0], (optimizer,)) if stack else None
    first = made.args[0] if made is not None and made.args else None
    if isinstance(first, ast.Name) or (isinstance(first, ast.Call) and syntax.called(first) == "parameters"):
        return ast.unparse(first)
    return "model.parameters()"


def _holder(event: Unoptimized) -> str:
    """The container of torch for what a plain one holds."""
    rest = event.names[0].removeprefix(event.container) if event.names else ""
    kind = "Module" if "." in rest else "Parameter"
    return f"nn.{kind}Dict" if rest.startswith("['") else f"nn.{kind}List"


def _place(event: Unoptimized) -> Stack:
    if event.why == "unfrozen" and event.holder:
        return switched_by(event.holder)
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
    return assignment(optimizer, given)


def _names(event: Unoptimized) -> str:
    return names_of(event.names, spoken_count(event.names, event.count))
