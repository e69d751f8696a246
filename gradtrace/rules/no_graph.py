"""backward() or autograd.grad() on a tensor that has no graph.

Why it matters
    Something between the parameters and the loss cut the path: detach(), .data, .item(), NumPy, torch.no_grad(),
    argmax, a comparison, torch.tensor(t), or parameters that are all frozen. torch names the loss, not the cut.

Bad
    pred = classifier(x).argmax(1)
    loss_fn(pred.float(), labels.float()).backward()

Good
    loss = F.cross_entropy(classifier(x), labels)
    loss.backward()

The finding is at the operation that cut the path.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Backward, Cut, Event, Step
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression
from gradtrace.source import questions

_ERROR = "does not require grad and does not have a grad_fn"
#: backward() on a number
_NUMBER = "has no attribute 'backward'"
_INPUT = "One of the differentiated Tensors does not require grad"

_MENDS = {
    "detached": "keep the tensor itself here: numbers, .data and detached tensors carry no graph",
    "copied": "keep the tensor, or use torch.stack or torch.cat on several: {op} copies values alone",
    "no_grad": "take what is to be trained out of torch.no_grad() (inference_mode, set_grad_enabled(False))",
    "not differentiable": "use something differentiable here: {op} has no gradient",
    "frozen": "leave requires_grad on for the parameters that are to be trained",
    "unasked": "make it with requires_grad=True, or call requires_grad_() on it, before the optimizer gets it",
}
#: what to use instead of an operation without a gradient
_INSTEAD = {
    **dict.fromkeys(
        ("argmax()", "argmin()"), "use the scores themselves: logits with cross_entropy, or softmax for a soft choice"
    ),
    **dict.fromkeys((">", "<", ">=", "<=", "=="), "use a smooth step: torch.sigmoid((x - threshold) / temperature)"),
    **dict.fromkeys(
        ("multinomial()", "bernoulli()", "poisson()"),
        "a sample has no gradient: use log_prob(sample) times the reward, or rsample() or gumbel_softmax",
    ),
    **dict.fromkeys(("long()", "int()", "bool()"), "stay in floating point: integers have no gradient"),
    **dict.fromkeys(
        ("max()", "min()", "topk()", "sort()"), "use the values that {op} gives, its indices have no gradient"
    ),
}


class NoGraph(Rule):
    id = "no-graph"
    level = Level.ERROR
    hears = (Step, Backward)

    def __init__(self) -> None:
        #: the last backward call, if all that it reached was made of values without a graph
        self._idle: Backward | None = None

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Step):
            idle, self._idle = self._idle, None
            without = bool(event.optimizer) and not (event.uses or event.unknown)
            return self._put_back(idle, event) if idle and without else []
        if not isinstance(event, Backward):
            return []
        if event.error is None:
            told = event.request == "backward" and all(cut.why in _MENDS for cut in event.rewrapped)
            self._idle = event if event.rewrapped and told else None
        elif _ERROR in event.error or _INPUT in event.error or _NUMBER in event.error:
            return self._explain(event)
        return []

    def _explain(self, event: Backward) -> list[Finding]:
        if any(cut.why not in _MENDS for cut in event.cuts):
            return []  # a constant gradient is told of by missing-create-graph
        request = expression(event.stack, event.root)
        cut = next(iter(event.cuts), None)
        name = questions.graded(event.stack[0]) if event.stack and not cut else ""
        if name and not (event.suspects and event.suspects[0].why == "unasked"):
            return self._unasked(event, event.stack, name)
        cut = cut or next(iter(event.suspects), None)
        if cut is None:
            asked = questions.unrequired(event.stack[0]) if event.stack else None
            return self.finding(
                (_at(event.stack[0], asked),) if asked else event.stack,
                f"{request} has no graph: nothing that went into it requires grad",
                "make what is to be trained with requires_grad=True, and compute with it in torch operations",
                ((event.stack, "this call finds no graph"),),
            )
        if cut.why == "unasked" and (given := questions.listed(cut.stack[0])):
            return self._unasked(event, cut.stack, given[0])
        return self._cut(cut, f"{request} has no graph", event, "this call finds no graph")

    def _put_back(self, event: Backward, step: Step) -> list[Finding]:
        """The loss was cut off and told to require grad again: no error, and no parameter gets a gradient."""
        what = f"{expression(event.stack, event.root)} is cut off from the parameters of {step.optimizer}, which get no gradient"
        return self._cut(event.rewrapped[0], what, event, "this call reaches none of them")

    def _cut(self, cut: Cut, what: str, event: Backward, role: str) -> list[Finding]:
        place = _place(cut)
        return self.finding(
            place,
            f"{what}: {_what(cut)}",
            _mend(cut),
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
            (stack[0]._replace(line=line), *stack[1:]) if line else stack,
            f"{expression(event.stack, event.root)} has no graph: `{name}` does not require grad",
            f"make it with requires_grad=True, or call `{name}.requires_grad_()` before it is used",
            (
                (stack if stack != event.stack else (), f"`{name}` is handed over here"),
                (event.stack, "this call finds no graph"),
            ),
        )


def _place(cut: Cut) -> Stack:
    """Where the path was cut; with gradients off, where they were switched off."""
    if cut.why != "no_grad":
        return cut.stack
    for depth, site in enumerate(cut.stack):
        line = questions.gradients_off(site.path, site.line)
        if line is not None:
            return (_at(site, line), *cut.stack[depth + 1 :])
    return cut.switched or cut.stack


def _at(site: Site, line: int) -> Site:
    return site._replace(line=line, column=None, end_line=None, end_column=None)


def _mend(cut: Cut) -> str:
    instead = _INSTEAD.get(cut.op) if cut.why == "not differentiable" else None
    return (instead or _MENDS[cut.why]).format(op=cut.op)


def _what(cut: Cut) -> str:
    if cut.why == "frozen":
        return "the parameters it depends on are frozen here"
    if cut.why == "no_grad":
        return f"`{cut.op}` ran with gradients off"
    if cut.why == "unasked":
        return f"`{cut.op}` was given a tensor that does not require grad"
    return f"`{cut.op}` cut the path to the parameters"
