"""One gradient updates a parameter twice: an optimizer holds it twice, or two optimizers step on it.

Why it matters
    A parameter that is listed twice is updated twice in each step, with momentum and weight decay applied twice as well. If
    two optimizers hold the same parameter and both step after one backward call, both updates are applied.

Bad
    optimizer = torch.optim.SGD([*model.parameters(), *model[2].parameters()], lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is where the optimizer is created, or at the second of the two steps. Optimizers that alternate on a parameter, each
with its own gradients, are not reported; nor are two that hold exactly the same parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gradtrace.model.events import Event, Step, Use
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.model.truths import HeldTwice
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import REGULARLY
from gradtrace.rules.judging.naming import names_of, them, these


class DuplicateParameter(Rule):
    id = "duplicate-parameter"
    level = Level.WARNING
    events = (HeldTwice, Step)

    def __init__(self) -> None:
        #: the optimizer that stepped last at each place: class, key and how many parameters it moved
        self._at: dict[Stack, tuple[str, int, int]] = {}
        self._shared: Counter[tuple[int, int]] = Counter()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, HeldTwice):
            return self.finding(
                event.made,
                f"`{event.optimizer}` holds {names_of(event.names, event.count)} twice, so each step updates {them(event.count)} twice",
                "list each parameter once: model.parameters() yields those of all submodules, and shared ones once",
            )
        if isinstance(event, Step) and event.optimizer:
            found = [use for use in event.uses if self._is_second(event, use)]
            self._at[event.stack] = event.optimizer, event.key, _moved(event)
            return self._both(event, found[0]) if found else []
        return []

    def _is_second(self, step: Step, use: Use) -> bool:
        """Whether another optimizer has used all of this gradient."""
        first = self._at.get(use.used_stack)
        if first is None or first[1] == step.key or not use.used or use.used < len(use.contributions):
            return False
        if use.count == first[2] == _moved(step):
            return False  # two that share all they hold do so on purpose
        # one optimizer that wraps another steps around it
        return use.used_stack[-len(step.stack) :] != step.stack

    def _both(self, step: Step, use: Use) -> list[Finding]:
        first, key, _ = self._at[use.used_stack]
        self._shared[key, step.key] += 1
        if self._shared[key, step.key] != REGULARLY:
            return []
        return self.finding(
            step.stack,
            f"`{step.optimizer}` steps on the gradient of {names_of(use.leaves, use.count)} that `{first}` has already used: "
            f"both hold {these(use.leaves, use.count)}, so one backward call updates {them(use.count)} twice",
            "pass each parameter to only one of the two optimizers, or clear its gradient between the two steps",
            (
                (use.used_stack, "the first of the two steps"),
                (use.contributions[-1].stack, "the gradient was computed here"),
            ),
        )


def _moved(step: Step) -> int:
    """How many parameters a step moved."""
    return sum(use.count for use in step.uses)
