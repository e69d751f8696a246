"""A frozen parameter or layer keeps changing.

Why it matters
    requires_grad = False stops new gradients, not the optimizer: a parameter that keeps an old .grad, even one of zeros, is
    still updated by momentum and weight decay. And batch norm in training mode updates its running statistics whether its
    weights are frozen or not.

Bad
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(2):
        for x, y in data:
            optimizer.zero_grad(set_to_none=False)
            loss_fn(model(x), y).backward()
            optimizer.step()
        model[0].requires_grad_(False)

Good
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(2):
        for x, y in data:
            optimizer.zero_grad()  # sets .grad to None
            loss_fn(model(x), y).backward()
            optimizer.step()
        model[0].requires_grad_(False)
        optimizer.zero_grad()

The finding is where the parameters are frozen. A frozen backbone whose batch norm stays in training mode is a note: some
people want the statistics to follow the new data.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, FrozenMoved
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.truths import FrozenStatistics
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import names_of, them


class FrozenMoves(Rule):
    id = "frozen-moves"
    level = Level.ERROR
    events = (FrozenMoved, FrozenStatistics)
    needs = Needs(steps=2)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, FrozenMoved):
            them_, are, their = them(event.count), *(("is", "its") if event.count == 1 else ("are", "their"))
            return self.finding(
                event.stack,
                f"{names_of(event.names, event.count)} {are} frozen, but `{event.optimizer}` still updates {them_}: {their} "
                f".grad is not None, even if it is zero, so the optimizer applies momentum and weight decay to {them_}",
                f"also set {their} .grad to None (zero_grad(set_to_none=True) does), or create a new optimizer without {them_}",
                ((event.step, f"this step updates {them_}"), (event.stack[1:], "called from here")),
            )
        if isinstance(event, FrozenStatistics):
            return self.finding(
                event.stack,
                f"the weights of this batch norm are frozen, but {event.calls} calls in training mode updated its "
                "running statistics",
                "call eval() on the frozen part after model.train(), if its outputs should stay the same",
                ((event.stack[1:], "called from here"),),
                Level.NOTE,
            )
        return []
