"""backward() or autograd.grad() on a tensor that has no graph.

Why it matters
    Something between the parameters and the loss cut the path: detach(), .data, .item(), NumPy, torch.no_grad(),
    argmax, a comparison, torch.tensor(t), or parameters that are all frozen. The error of torch names neither the operation nor its line.

Bad
    pred = classifier(x).argmax(1)
    loss_fn(pred.float(), labels.float()).backward()

Good
    loss = F.cross_entropy(classifier(x), labels)
    loss.backward()

The finding is at the operation that cut the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gradtrace.model.events import Backward, Cut, Event, GradMissing, Step
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import at_line, cut_place, turned_off
from gradtrace.rules.judging.cuts import fix, operation
from gradtrace.rules.judging.evidence import TWICE
from gradtrace.rules.judging.naming import expression
from gradtrace.source import questions

_ERROR = "does not require grad and does not have a grad_fn"
#: backward() on a number
_NUMBER = "has no attribute 'backward'"
_INPUT = "One of the differentiated Tensors does not require grad"

#: causes that are reported here
_CAUSES = ("detached", "copied", "no_grad", "not differentiable", "frozen", "unasked")


class NoGraph(Rule):
    id = "no-graph"
    level = Level.ERROR
    events = (Step, Backward, GradMissing)
    #: at that line the same cut makes a term of the loss a constant
    covers = frozenset({"dead-loss-term"})

    def __init__(self) -> None:
        #: the last backward call, if all that it reached was made of values without a graph
        self._idle: Backward | None = None
        #: calls on a leaf that was made of such a value, by place
        self._leaves: Counter[Stack] = Counter()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Step):
            idle, self._idle = self._idle, None
            without = bool(event.optimizer) and not (event.uses or event.unknown)
            return self._put_back(idle, event) if idle and without else []
        if isinstance(event, GradMissing):
            return self._inferred(event) if event.kind == "inference" else []
        if not isinstance(event, Backward):
            return []
        if event.error is None:
            explained = event.request == "backward" and all(cut.why in _CAUSES for cut in event.rewrapped)
            self._idle = event if event.rewrapped and explained else None
            return self._on_a_leaf(event) if self._idle is not None and not event.nodes else []
        if _ERROR in event.error or _INPUT in event.error or _NUMBER in event.error:
            return self._explain(event)
        return []

    def _explain(self, event: Backward) -> list[Finding]:
        if any(cut.why not in _CAUSES for cut in event.cuts):
            return []  # missing-create-graph explains a constant gradient
        request = expression(event.stack, event.root)
        cut = next(iter(event.cuts), None)
        name = questions.graded(event.stack[0]) if event.stack and not cut else ""
        if name and not (event.suspects and event.suspects[0].why == "unasked"):
            return self._unasked(event, event.stack, name)
        cut = cut or next(iter(event.suspects), None)
        if cut is None:
            asked = questions.unrequired(event.stack[0]) if event.stack else None
            return self.finding(
                (at_line(event.stack[0], asked),) if asked else event.stack,
                f"{request} has no graph: none of the tensors that it was computed from requires grad",
                "create the tensors that should be trained with requires_grad=True, and use torch operations on them",
                ((event.stack, "this call finds no graph"),),
            )
        if cut.why == "unasked" and (given := questions.listed(cut.stack[0])):
            return self._unasked(event, cut.stack, given[0])
        return self._cut(cut, f"{request} has no graph", event, "this call finds no graph")

    def _inferred(self, event: GradMissing) -> list[Finding]:
        """What was made in inference mode can be part of no graph, and torch ends the script over it."""
        place = turned_off(event.made) or event.made
        return self.finding(
            place,
            "a tensor that was created under torch.inference_mode() can never be part of a graph, but "
            f"{event.op} must save it for backward",
            "use torch.no_grad() instead, or clone() the tensor outside of inference mode",
            (
                (event.made, "the tensor is computed here"),
                (event.stack, f"the tensor is passed to {event.op} here"),
                (place[1:], "called from here"),
            ),
        )

    def _on_a_leaf(self, event: Backward) -> list[Finding]:
        """The loss itself is a leaf: whatever else is trained, this call gives no parameter a gradient."""
        self._leaves[event.stack] += 1
        if self._leaves[event.stack] != TWICE:
            return []
        what = f"{expression(event.stack, event.root)} is a new leaf, so this call gives no parameter a gradient"
        return self._cut(event.rewrapped[0], what, event, "this call reaches only the new leaf")

    def _put_back(self, event: Backward, step: Step) -> list[Finding]:
        """The loss was detached and set to require grad again: no error, and no parameter gets a gradient."""
        root = expression(event.stack, event.root)
        what = f"{root} has no path to the parameters of {step.optimizer}, so they get no gradient"
        return self._cut(event.rewrapped[0], what, event, "this call reaches none of these parameters")

    def _cut(self, cut: Cut, what: str, event: Backward, role: str) -> list[Finding]:
        place = cut_place(cut)
        return self.finding(
            place,
            f"{what}: {_what(cut)}",
            fix(cut),
            (
                (cut.stack, _what(cut)),
                *((other.stack, _what(other)) for other in event.cuts[1:]),
                (event.stack, role),
                (place[1:], "called from here"),
            ),
        )

    def _unasked(self, event: Backward, stack: Stack, name: str) -> list[Finding]:
        line = questions.set_before(stack[0], name)
        return self.finding(
            (at_line(stack[0], line), *stack[1:]) if line else stack,
            f"{expression(event.stack, event.root)} has no graph: `{name}` does not require grad",
            f"create `{name}` with requires_grad=True, or call `{name}.requires_grad_()` before it is used",
            (
                (stack if stack != event.stack else (), f"`{name}` is passed here"),
                (event.stack, "this call finds no graph"),
            ),
        )


def _what(cut: Cut) -> str:
    if cut.why == "frozen":
        return "the parameters that it depends on are frozen"
    if cut.why == "no_grad":
        return f"{operation(cut)} ran with gradients off"
    if cut.why == "unasked":
        return f"{operation(cut)} was passed a tensor that does not require grad"
    return f"{operation(cut)} cuts the path to the parameters"
