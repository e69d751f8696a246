"""A gradient becomes a term of a loss, but it was taken without create_graph: it is a constant there.

Why it matters
    A gradient penalty, a slope to be learned, a second derivative are functions of the parameters. Without
    create_graph=True torch computes the value of the gradient alone. The term is still in the loss that is printed,
    but no parameter feels it.

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

The finding is at the call that takes the gradient. A gradient that moves an input (an attack, a saliency map),
updates by hand or weighs a loss is meant to be a constant, and is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gradtrace.model.events import Backward, ConstantGradient, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression

_HELP = {
    "grad": "pass create_graph=True to this call (it implies retain_graph=True)",
    "backward": "take it with torch.autograd.grad(..., create_graph=True) instead of backward() and .grad",
}


class MissingCreateGraph(Rule):
    id = "missing-create-graph"
    level = Level.ERROR
    hears = (Backward, ConstantGradient)
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
        # one step alone may be anything
        if self._seen[event.stack[:1]] != 2:
            return []
        loss, of = expression(event.backward, event.loss), f"gradient of {expression(event.stack, event.root)}"
        return self.finding(
            event.stack,
            f"the {of} is a term of {loss}, but a constant there: it was taken without create_graph, and trains nothing",
            _HELP[event.request],
            (
                (event.entered, "it becomes a term of the loss here"),
                (event.backward, f"{loss} is backpropagated here, without an effect of this term"),
                (event.stack[1:], "called from here"),
            ),
        )

    def _failed(self, event: Backward) -> list[Finding]:
        cut = next((one for one in event.cuts if one.why == "constant gradient"), None)
        if cut is None or event.error is None:
            return []
        return self.finding(
            cut.stack,
            f"{expression(event.stack, event.root)} is computed from this gradient alone, which has no graph: it was taken "
            "without create_graph",
            _HELP["grad"],
            ((event.stack, "this call finds no graph"), (cut.stack[1:], "called from here")),
        )
