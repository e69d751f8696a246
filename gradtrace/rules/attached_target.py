"""A bootstrap target is computed with gradients, by the network that should learn it.

Why it matters
    In Q-learning and actor-critic methods the target `reward + gamma * value(next_state)` stands for data. With its graph
    attached, the loss also moves the value of the next state toward the current one. That is another method (residual
    gradients), and rarely intended: it learns more slowly, or learns something else.

Bad
    for x, y in data:
        target = y + 0.99 * model(x + 1)
        loss = loss_fn(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        with torch.no_grad():
            target = y + 0.99 * model(x + 1)
        loss = loss_fn(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

The finding is at the line that computes the target. It is a note, since residual-gradient methods do this on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import AttachedTarget, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import assigned_name


class AttachedTargetRule(Rule):
    id = "attached-target"
    level = Level.NOTE
    events = (AttachedTarget,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, AttachedTarget) or not event.stack:
            return []
        variable = assigned_name(event.stack)
        name = f"`{variable}`" if variable else "this target"
        detach = f", or use `{variable}.detach()`" if variable else ""
        return self.finding(
            event.stack,
            f"{name} requires grad: {event.function} trains the network through the target as well as through its prediction",
            f"compute {name} under torch.no_grad(){detach}, unless you intend residual gradients",
            ((event.loss, "the loss is computed here"), (event.stack[1:], "called from here")),
        )
