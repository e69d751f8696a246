"""A gradient is used as a term of a loss, but was computed without create_graph, so the term is a constant.

Why it matters
    A gradient penalty, a learned slope and a second derivative are functions of the parameters. Without
    create_graph=True torch computes only the value of the gradient. The term is still part of the printed loss, but
    trains no parameter.

Bad
    for x, y in data:
        x.requires_grad_()
        slope = torch.autograd.grad(model(x).sum(), x)[0]
        loss = loss_fn(model(x), y) + slope.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        x.requires_grad_()
        slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
        loss = loss_fn(model(x), y) + slope.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

The finding is at the call that computes the gradient. A gradient that changes an input (an attack, a saliency map),
updates parameters by hand or weights a loss is a constant on purpose, and is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gradtrace.model.events import Backward, ConstantGradient, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import TWICE
from gradtrace.rules.judging.naming import expression

_HELP = {
    "grad": "pass create_graph=True to this call (it implies retain_graph=True)",
    "backward": "compute the gradient with torch.autograd.grad(..., create_graph=True) instead of backward() and .grad",
}


class MissingCreateGraph(Rule):
    id = "missing-create-graph"
    level = Level.ERROR
    events = (Backward, ConstantGradient)
    #: at that line the graph is kept in vain for the same reason
    covers = frozenset({"unneeded-retain"})

    def __init__(self) -> None:
        self._seen: Counter[Stack] = Counter()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Backward):
            return self._failed(event)
        if not isinstance(event, ConstantGradient):
            return []
        self._seen[event.stack[:1]] += 1
        if self._seen[event.stack[:1]] != TWICE:
            return []
        loss, of = expression(event.backward, event.loss), f"gradient of {expression(event.stack, event.root)}"
        return self.finding(
            event.stack,
            f"the {of} is a term of {loss}, but it was computed without create_graph, so it is a constant and trains nothing",
            _HELP[event.request],
            (
                (event.entered, "the gradient is used in the loss here"),
                (event.backward, f"{loss} is backpropagated here, and this term has no effect"),
                (event.stack[1:], "called from here"),
            ),
        )

    def _failed(self, event: Backward) -> list[Finding]:
        cut = next((one for one in event.cuts if one.why == "constant gradient"), None)
        if cut is None or event.error is None:
            return []
        return self.finding(
            cut.stack,
            f"{expression(event.stack, event.root)} has no graph: it is computed only from this gradient, which was computed "
            "without create_graph",
            _HELP["grad"],
            ((event.stack, "this call finds no graph"), (cut.stack[1:], "called from here")),
        )
