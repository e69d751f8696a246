"""A parameter is passed to an optimizer, but never receives a gradient.

Why it matters
    The optimizer silently skips parameters without a gradient. A layer that forward never calls, that runs under
    torch.no_grad(), or whose result is detached, rounded to labels or copied into a new tensor keeps its initial random
    values; only the rest of the model is trained.

Bad
    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 1)

        def forward(self, x):
            return self.head(self.body(x).detach())

Good
    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 1)

        def forward(self, x):
            return self.head(self.body(x))

The finding is at the line that turns gradients off or cuts the path, where the backward of a custom Function returns
None for the parameter, or where the unused module is created. Frozen parameters (requires_grad=False) are not
reported. Where a module may be unused on purpose, or others are only compared with what it computes, this is a note, and
so is a stage of training that a flag or a named threshold ends (`if self.frozen:`, `epoch >= freeze_after`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Backward, Cut, Event, GradientLost, GradMissing, Unreached
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import at_line, cut_place, turned_off
from gradtrace.rules.judging.cuts import difference, fix, operation
from gradtrace.rules.judging.intent import ended_by, is_reference, may_be_untrained
from gradtrace.rules.judging.naming import grad_read, names_of, spoken_count, them, these
from gradtrace.source import questions, syntax


class UnreachedParameter(Rule):
    id = "unreached-parameter"
    level = Level.WARNING
    events = (Backward, Unreached, GradientLost, GradMissing)
    #: at that line the same cut makes a term of the loss a constant
    covers = frozenset({"dead-loss-term"})
    needs = Needs(steps=3)

    def __init__(self) -> None:
        #: a loss was detached and set to require grad again: no-graph reports that
        self._put_back = False

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Backward):
            self._put_back |= bool(event.rewrapped)
        if isinstance(event, GradMissing):
            return self._missing(event, event.cut) if event.cut is not None else []
        if isinstance(event, GradientLost):
            return self._lost(event)
        if not isinstance(event, Unreached):
            return []
        if event.why == "no_grad":
            return self._under_no_grad(event)
        if event.why == "cut" and event.cut is not None:
            return [] if event.all and self._put_back else self._cut(event, event.cut)
        if event.why == "withheld":
            return self._withheld(event)
        return self._ignored(event) if event.why == "ignored" else self._unused(event)

    def _under_no_grad(self, event: Unreached) -> list[Finding]:
        off = turned_off(event.used)
        subject = these(event.names, _number(event))
        it = them(_number(event))
        turned = "this line turns gradients off" if off else "gradients are off"
        return self.finding(
            off or event.used,
            f"{_names(event)} {_never(event)}: {turned} where {'it is' if _number(event) == 1 else 'they are'} used",
            f"use {it} with gradients on if {subject} should be trained; if not, call requires_grad_(False) on {it} and do "
            f"not pass {it} to the optimizer",
            (_used(event), (event.optimizer_stack, f"{event.optimizer} is created here")),
            Level.NOTE if may_be_untrained(event) else None,
        )

    def _cut(self, event: Unreached, cut: Cut) -> list[Finding]:
        if event.straight_through:
            return self._straight_through(event, cut)
        off = cut.why == "no_grad"
        op = operation(cut)
        what = f"{op} is computed with gradients off" if off else f"{op} cuts the path to the loss"
        return self.finding(
            cut_place(cut),
            f"{_names(event)} {_never(event)}: {what}",
            _cut_fix(event, cut),
            (
                (cut.stack, f"{op} is computed with gradients off" if off else ""),
                _used(event),
                (event.optimizer_stack, f"{event.optimizer} is created here"),
            ),
            _cut_level(event, off),
        )

    def _straight_through(self, event: Unreached, cut: Cut) -> list[Finding]:
        """The sum is right as it is: what it takes its value from needs a loss of its own."""
        sides = difference(cut)
        example = f": F.mse_loss({sides[0]}, {sides[1]}.detach())" if sides else ""
        return self.finding(
            cut.stack,
            f"{_names(event)} {_never(event)}: {operation(cut)} passes on only the value, as a straight-through estimator "
            f"does, and no term of the loss depends on {them(_number(event))}",
            f"keep the sum as it is, and add a loss term computed before detach(){example}",
            (
                _used(event),
                (event.optimizer_stack, f"{event.optimizer} is created here"),
            ),
            Level.ERROR,
        )

    def _missing(self, event: GradMissing, cut: Cut) -> list[Finding]:
        """The script failed on a gradient that no backward call could compute."""
        op = operation(cut)
        name = event.name or grad_read(event.stack[0]) or "this parameter"
        return self.finding(
            cut_place(cut),
            f"`{name}.grad` is None after backward(): {op} cuts the path from `{name}` to the loss",
            fix(cut),
            ((event.stack, "the missing gradient is read here"), (cut.stack, f"{op} is computed here")),
            Level.ERROR,
        )

    def _lost(self, event: GradientLost) -> list[Finding]:
        """Trained at first; a branch that runs later cuts the path."""
        op = operation(event.cut)
        off = event.cut.why == "no_grad"
        switch = ended_by(event.cut.stack, event.backward)
        return self.finding(
            cut_place(event.cut),
            f"{_names(event)} got gradients at first, and none in the last {event.steps} steps of {event.optimizer}: "
            f"{op} {'is computed with gradients off' if off else 'cuts the path to the loss'} since then",
            f"if `{switch}` ends their training on purpose, leave this line as it is; otherwise, {fix(event.cut)}"
            if switch
            else fix(event.cut),
            (
                (event.cut.stack, f"{op} is computed here" if off else ""),
                (event.backward, f"this backward call reached {them(_number(event))} before"),
            ),
            Level.NOTE if switch else None,
        )

    def _withheld(self, event: Unreached) -> list[Finding]:
        site = event.born[0]
        off = questions.differentiates_without_graph(site.path, site.line)
        line = off or questions.gives_none(site.path, site.line)
        if off:
            why = f"{site.function} runs with gradients off, so its recomputation has no graph"
            instead = "recompute under `with torch.enable_grad():`, from detached inputs that require grad"
        else:
            why = f"{site.function} returns None for {them(_number(event))}"
            instead = "return a gradient for each input of forward that needs one, in the order of its arguments"
        return self.finding(
            (at_line(site, line),) if line else event.born,
            f"{_names(event)} {_never(event)}: {why}",
            instead,
            (
                (event.born, "the backward of the custom Function is defined here"),
                _used(event),
                (event.optimizer_stack, f"{event.optimizer} is created here"),
            ),
        )

    def _ignored(self, event: Unreached) -> list[Finding]:
        lost = _lost(event.used)
        what = (
            f"the result that this line computes from {them(_number(event))} is never used"
            if lost
            else f"the result that this line computes from {them(_number(event))} is part of no loss"
        )
        return self.finding(
            lost or event.used,
            f"{_names(event)} {_never(event)}: {what}",
            "use this result, or delete this line and its module"
            if lost
            else f"add a loss term that depends on this result, or do not pass {these(event.names, _number(event))} to the optimizer",
            ((event.optimizer_stack, f"{event.optimizer} is created here"),),
            None if lost and not may_be_untrained(event) else Level.NOTE,
        )

    def _unused(self, event: Unreached) -> list[Finding]:
        attribute = _attribute(event)
        by_choice = (
            may_be_untrained(event) or not attribute or any(questions.mentions(path, attribute) for path in event.files)
        )
        return self.finding(
            event.born or event.optimizer_stack,
            f"{_names(event)} {_never(event)}: no operation ever uses {them(_number(event))}",
            f"use {_owner(event, attribute)} in the forward pass, or delete it",
            (
                (event.used, "this line only reads a value"),
                (event.optimizer_stack, f"{event.optimizer} is created here"),
            ),
            Level.NOTE if by_choice else None,
        )


def _cut_fix(event: Unreached, cut: Cut) -> str:
    if not is_reference(event):
        return fix(cut)
    them_ = them(_number(event))
    are = "is" if _number(event) == 1 else "are"
    named = these(event.names, _number(event))
    return f"if {named} {are} only there to compare with, do not pass {them_} to the optimizer; otherwise, {fix(cut)}"


def _cut_level(event: Unreached, off: bool) -> Level:
    if is_reference(event) or (off and may_be_untrained(event)):
        return Level.NOTE
    return Level.WARNING if off else Level.ERROR


def _attribute(event: Unreached) -> str:
    """The attribute that the user's code would name: of the bias of a layer, the layer. Empty for what only the optimizer
    holds."""
    if ".param_groups[" in event.names[0]:
        return ""
    attribute = event.attribute.partition("[")[0]
    if attribute not in ("weight", "bias"):
        return attribute
    above = event.names[0].replace("[", ".").replace("]", "").split(".")[:-1]
    return next((part for part in reversed(above) if not part.isdigit()), attribute)


def _used(event: Unreached) -> tuple[Stack, str]:
    """The note about where they are used."""
    return event.used, f"{these(event.names, _number(event))} {'is' if _number(event) == 1 else 'are'} used here"


def _owner(event: Unreached, attribute: str) -> str:
    """What the user's code would name to use them."""
    if attribute.isidentifier():
        return f"`{attribute}`"
    return f"`{event.names[0]}`" if len(event.names) == 1 else "the module"


def _names(event: Unreached | GradientLost) -> str:
    return names_of(event.names, _number(event))


def _number(event: Unreached | GradientLost) -> int:
    return spoken_count(event.names, event.count)


def _never(event: Unreached) -> str:
    return f"got no gradient in {event.steps} steps of {event.optimizer}"


def _lost(used: Stack) -> Stack:
    """The frames from the line that assigns a result to a variable which nothing reads; empty where it is read.

    What is computed in a module goes into what that returns, whatever lies between.
    """
    for depth, site in enumerate(used):
        if questions.never_read(site):
            return used[depth:]
        found = syntax.statement(site.path, site.line, site.column)
        if not isinstance(found, ast.Return) and not (isinstance(found, ast.Assign) and site.in_module_call):
            return ()
    return ()
