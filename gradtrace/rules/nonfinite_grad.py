"""NaN or infinity reaches the gradient of a leaf.

Why it matters
    The derivative of some operations is not finite everywhere: sqrt and log at 0, division by 0, acos at 1, softmax over a
    row of -inf. torch.where, masks and nan_to_num after them fix the value, not the derivative: backward multiplies
    infinity by 0, which is NaN, and one step later every parameter is NaN. Until then the loss looks fine.

Bad
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    safe = torch.where(x > 0, torch.log(x), 0.0)
    safe.sum().backward()  # x.grad has a NaN

Good
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    safe = torch.where(x > 0, torch.log(torch.where(x > 0, x, 1.0)), 0.0)
    safe.sum().backward()

The finding is at the operation that produces it, in a graph or in code that writes gradients by hand; where that is not known,
at the step that uses the gradient. NaN that a mask removes before it reaches a leaf is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradtrace.model.events import End, Event, NonFinite
from gradtrace.model.finding import SAVED_VALUES, Finding, Level, Needs
from gradtrace.model.truths import NonFiniteLoss, NonFiniteStep
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import TWICE
from gradtrace.rules.judging.intent import skips_step
from gradtrace.rules.judging.naming import expression, names_of

_WHERE = "a torch.where or mask after it is too late, since backward runs through both branches: mask the input"

#: by kind: what happened, and the fix
_KINDS = {
    "zero": (
        "{op} of zero has no finite derivative",
        "keep its input away from zero: add a small eps, or clamp(min=eps)",
    ),
    "negative": ("{op} of a negative number is NaN", "clamp its input to the domain of {op}"),
    "edge": (
        "{op} has an infinite derivative at the ends of its domain",
        "clamp its input: x.clamp(-1 + eps, 1 - eps)",
    ),
    "outside": ("{op} of a number outside its domain is NaN", "clamp its input to the domain, inside by a small eps"),
    "row": (
        "{op} over a row that is all -inf is NaN",
        "leave one entry of each row unmasked, or mask with a large finite number (-1e9) instead of -inf",
    ),
    "single": (
        "{op} of a single value is NaN, since it divides by n - 1",
        "pass unbiased=False (correction=0), or skip batches of one sample",
    ),
    "repeated": (
        "backward of {op} divides by the differences of eigenvalues (or singular values), and some are equal",
        "add a little noise or distinct values on the diagonal, use eigenvalues alone, or a Cholesky factor instead",
    ),
    "singular": ("{op} has no finite gradient at a singular matrix", "add eps * torch.eye(n) to the matrix"),
    "short": (
        "ctc_loss is infinite where the input is shorter than its target",
        "pass zero_infinity=True, or drop those samples",
    ),
    "inf": (
        "the input of {op} has an infinite value, and zero times infinity is NaN in backward, even if it is masked afterwards",
        "replace the infinite values *before* this operation (masked_fill(mask, 0.0)), not the NaN after it",
    ),
    "nan": (
        "the input of {op} has a NaN, and zero times NaN is NaN in backward, even if it is masked afterwards",
        "replace the NaN in its input first (torch.where, nan_to_num), then compute",
    ),
    "overflow": (
        "the result of {op} is too large for its dtype",
        "clamp its input, or use the stable form (logsumexp, softplus, log_softmax, binary_cross_entropy_with_logits)",
    ),
    "custom": (
        "the backward of this custom Function returns values that are not finite",
        "guard the divisions, logarithms and square roots in its backward",
    ),
    "unknown": (
        "backward of {op} turns finite gradients into values that are not finite",
        "check the inputs of this operation; torch.autograd.set_detect_anomaly(True) stops at it",
    ),
}
_DIVISION = (
    "{op} by zero has no finite derivative",
    "keep the divisor away from zero: add a small eps, or clamp(min=eps)",
)
#: where the range is not that of a sine
_EDGES = {"AcoshBackward0": "x.clamp(min=1 + eps)", "LogitBackward0": "x.clamp(eps, 1 - eps), or pass eps=1e-6"}
_QUOTIENTS = ("Div", "Reciprocal", "Addcdiv")
_NORMALISED = ("{op} of equal values divides by zero", "pass it an eps greater than zero")

#: by operation without a graph: what it does, and how to guard it
_BY_HAND = {
    "log": "takes the logarithm of zero",
    "sqrt": "takes the square root of a negative number",
    "mean": "takes the mean of an empty tensor",
    "std": "takes the standard deviation of a single value",
    "var": "takes the variance of a single value",
}
_GUARDS = {
    "log": "clamp its input to a small eps first",
    "sqrt": "clamp its input to zero or more first",
    "mean": "skip the case of an empty tensor",
    "std": "pass correction=0, or skip the case of a single value",
    "var": "pass correction=0, or skip the case of a single value",
}
_CALLED = {"": "it", "div": "division", "mul": "the product", "log1_p": "log1p", "linalg_vector_norm": "norm"}


class NonFiniteGrad(Rule):
    id = "nonfinite-grad"
    level = Level.ERROR
    events = (NonFinite, NonFiniteStep, NonFiniteLoss, End)
    needs = Needs(abilities=(SAVED_VALUES,))

    def __init__(self) -> None:
        #: a finding names the cause; else what is known alone
        self._explained = False
        self._overflow: NonFinite | None = None
        self._step: NonFiniteStep | None = None
        self._loss: NonFiniteLoss | None = None

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, NonFinite):
            # the script ended over it, whatever a GradScaler would have done
            level = Level.ERROR if event.error else _level(event)
            return [] if skips_step(event) else self._born(event, level)
        if isinstance(event, NonFiniteStep):
            self._step = event
        elif isinstance(event, NonFiniteLoss):
            self._loss = event
        elif isinstance(event, End) and not self._explained:
            return self._unexplained()
        return []

    def _unexplained(self) -> list[Finding]:
        """The fact alone, with the best cause that is known."""
        # the last step of a run that stops because of it is no fault
        goes_on = self._loss is not None and self._loss.times >= TWICE
        if self._overflow is not None:
            return self._born(self._overflow, Level.WARNING) if goes_on else []
        if self._step is not None:
            return self._used(self._step)
        return self._lost(self._loss) if self._loss is not None and goes_on else []

    def _used(self, event: NonFiniteStep) -> list[Finding]:
        names = names_of(event.names, event.count)
        after = ", and the parameters are NaN or infinite from then on" if event.spoiled else ""
        called = event.op.strip("_")
        by = _BY_HAND.get(called, "divides by zero")
        if event.born:
            message = f"this line {by}: the gradient of {names}, which a step uses, becomes NaN or infinite{after}"
            fix = (
                f"guard it: {_GUARDS.get(called, 'add a small eps to the divisor, or skip the case where it is zero')}"
            )
        elif event.written:
            message = f"the gradient that this line assigns to {names} is NaN or infinite when a step uses it{after}"
            fix = "check the values that it is computed from, and skip the step where they are not finite"
        else:
            message = f"this step uses a gradient of {names} that is NaN or infinite{after}"
            fix = (
                "check the loss and the gradients before this step: torch.autograd.set_detect_anomaly(True) stops where a "
                "backward call produces NaN, and clip_grad_norm_(..., error_if_nonfinite=True) before the step"
            )
        return self.finding(
            event.born or event.written or event.stack,
            message,
            fix,
            (
                (event.written, "the gradient is assigned here"),
                (event.stack, "this step uses the gradient"),
                (event.born[1:], "called from here"),
            ),
            None if event.spoiled else Level.NOTE,
        )

    def _lost(self, event: NonFiniteLoss) -> list[Finding]:
        return self.finding(
            event.stack,
            f"{expression(event.stack, event.root)} is NaN or infinite, and a step uses its gradients",
            "find the term that is not finite, and keep it out of the loss; skip the step where the loss is not finite",
            ((event.step, "this step uses the gradients"),),
            Level.WARNING,
        )

    def _born(self, event: NonFinite, level: Level) -> list[Finding]:
        if level is Level.NOTE:
            self._overflow = event
        else:
            self._explained = True
        what, fix = _words(event)
        return self.finding(
            event.made or event.born or event.stack,
            f"{what.format(op=_spoken(event.op))}: {event.value} reaches {_leaves(event)}{_although(event)}",
            f"{fix.format(op=_spoken(event.op))}{'; ' + _WHERE if event.kind == 'zero' and not event.lost else ''}",
            (
                (event.born, f"in backward, the gradient becomes {event.value} here ({_spoken(event.born_op)})"),
                (event.stack, f"in this backward call, {event.value} reaches the leaves"),
                (event.made[1:], "called from here"),
            ),
            level,
        )


def _words(event: NonFinite) -> tuple[str, str]:
    if event.kind == "zero" and event.op.startswith(_QUOTIENTS):
        return _DIVISION
    if event.kind == "zero" and event.op.startswith("Native"):
        return _NORMALISED
    if event.kind == "edge" and event.op in _EDGES:
        return _KINDS["edge"][0], f"clamp its input: {_EDGES[event.op]}"
    return _KINDS[event.kind]


def _level(event: NonFinite) -> Level:
    """A run that diverges overflows somewhere: that is a fact, not a fault of that line. exp is another matter."""
    if event.kind == "overflow" and not event.op.startswith(("Exp", "Pow")):
        return Level.NOTE
    return Level.ERROR


def _leaves(event: NonFinite) -> str:
    if not event.leaves:
        return "the gradients of leaves"
    named = f"`{event.leaves[0]}`" if " of shape " not in event.leaves[0] else event.leaves[0]
    return f"the gradient of {named}" + (" and others" if len(event.leaves) > 1 else "")


def _although(event: NonFinite) -> str:
    if not event.root:
        return ""
    return f", and `{event.root}` itself is not finite" if event.lost else f", although `{event.root}` is finite"


def _spoken(op: str) -> str:
    """`log_softmax` for `LogSoftmaxBackward0`, `linalg.eigh` for `LinalgEighBackward0`."""
    name = re.sub(r"(Ex)?Backward\d*$", "", op)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().removeprefix("native_")
    return _CALLED.get(name, name.replace("linalg_", "linalg."))
