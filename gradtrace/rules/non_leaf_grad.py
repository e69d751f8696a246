"""A non-leaf tensor is used as a leaf: its .grad is read, or it is passed to an optimizer.

Why it matters
    backward() fills .grad only of leaves: tensors that are not the result of an operation. `.to()`, a slice or a
    multiplication returns a new tensor, whose .grad stays None; a manual update that skips None then never happens, and
    an optimizer rejects the tensor.

Bad
    scale = torch.ones(1, requires_grad=True).to(torch.float64)
    loss = (scale - 3).square().sum()
    loss.backward()
    print(scale.grad)  # None

Good
    scale = torch.ones(1, dtype=torch.float64, requires_grad=True)
    loss = (scale - 3).square().sum()
    loss.backward()
    print(scale.grad)

For the gradient of an intermediate result (a feature map), call retain_grad() on it before backward(). The finding is at the
operation whose result was used in place of the leaf, else where the missing gradient is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from gradtrace.model.events import Event, GradMissed, NotOptimizable
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import shared_depth, within
from gradtrace.rules.judging.naming import grad_read
from gradtrace.source import questions, syntax


class NonLeafGrad(Rule):
    id = "non-leaf-grad"
    level = Level.ERROR
    events = (GradMissed, NotOptimizable)
    #: at that line the same tensor is the cause of both
    covers = frozenset({"freed-graph"})

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, GradMissed):
            # the read that ended the script was reported before
            return [replace(one, occurrences=one.occurrences - bool(event.error)) for one in self._missed(event)]
        return self._refused(event) if isinstance(event, NotOptimizable) else []

    def _missed(self, event: GradMissed) -> list[Finding]:
        if not event.stack or _only_clears(event.stack[0]):
            return []
        name = _whose(event.stack[0])
        if event.stray_leaf and event.made:
            return self.finding(
                event.made,
                f"{event.op} returns a new tensor, not the leaf, so .grad of {name} stays None: backward fills only the .grad of the leaf",
                _earlier(event),
                ((event.stack, ".grad is read here, and is None"), (event.made[1:], "called from here")),
            )
        return self.finding(
            event.stack,
            f".grad of {name} is read, but {name} is the result of {event.op}, not a leaf, so backward does not fill its .grad",
            f"call retain_grad() on {name} before backward(), or compute the gradient with torch.autograd.grad",
            ((event.made, f"{name} was computed here"),),
        )

    def _refused(self, event: NotOptimizable) -> list[Finding]:
        made = within(event.made, shared_depth(event.made, event.stack)) if event.made else event.stack
        return self.finding(
            made,
            f"{event.op} returns a non-leaf tensor, and {event.optimizer} rejects it",
            "make the result a leaf: `.detach().clone().requires_grad_()`, or pass the optimizer the leaf itself",
            ((event.stack, f"the result is passed to {event.optimizer} here"),),
        )


def _earlier(event: GradMissed) -> str:
    """How to have a leaf in the place of what was made of one."""
    names = questions.assigned(event.made[0])
    updated = next((name for name in names if f"{name}.grad" in syntax.line_text(*event.made[0].place)), "")
    if updated:
        return f"make `{updated}` a leaf again: `{updated} = (...).detach().requires_grad_()`"
    if event.op == "to()":
        return "convert first, and set requires_grad last: `torch.ones(n, dtype=..., device=...).requires_grad_()`"
    return f"call requires_grad_() on the result of {event.op}, or keep the leaf in a variable and read its .grad"


def _whose(site: Site) -> str:
    read = grad_read(site)
    return f"`{read}`" if read else "this tensor"


def _only_clears(site: Site) -> bool:
    """`if x.grad is not None: x.grad.zero_()`: nothing is missed where there is nothing to clear."""
    found = syntax.statement(site.path, site.line, site.column)
    if found is not None and site.column is not None and found.lineno == site.line and site.column < found.col_offset:
        return _clears(found)  # the read stands in a test before it, on the same line
    return isinstance(found, ast.If) and not found.orelse and all(_clears(one) for one in found.body)


def _clears(found: ast.stmt) -> bool:
    if isinstance(found, ast.Expr) and isinstance(found.value, ast.Call):
        return getattr(found.value.func, "attr", "") in ("zero_", "detach_", "requires_grad_")
    return isinstance(found, ast.Assign) and all(getattr(target, "attr", "") == "grad" for target in found.targets)
