"""The two sides of a loss broadcast against each other, so that every prediction is compared with every target.

Why it matters
    [n, 1] minus [n] is [n, n], and no error is raised: each prediction is compared with every target, and the best that
    the model can do is predict their mean. The loss falls a little and then stops improving.

Bad
    loss = F.mse_loss(model(x), prices)  # [16, 1] and [16]
    loss.backward()

Good
    loss = F.mse_loss(model(x).squeeze(1), prices)
    loss.backward()

The finding is at the line that combines them. Sides that were unsqueezed on purpose are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Broadcast, Event
from gradtrace.model.finding import SAVED_VALUES, Finding, Level, Needs
from gradtrace.rules.base import Rule


class BroadcastLoss(Rule):
    id = "broadcast-loss"
    level = Level.WARNING
    events = (Broadcast,)
    needs = Needs(abilities=(SAVED_VALUES,))

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Broadcast):
            return []
        one, other, result = list(event.one), list(event.other), list(event.result)
        return self.finding(
            event.stack,
            f"{event.op} of shapes {one} and {other} broadcasts to {result}: every sample is "
            f"{_COMBINED.get(event.op, 'compared with')} every other",
            f"give both the same shape: {_fix(event)}",
            ((event.stack[1:], "called from here"),),
        )


#: what an operation does with its two sides, where it does not compare them
_COMBINED = {"mul": "multiplied by", "div": "divided by", "add": "added to"}


def _fix(event: Broadcast) -> str:
    longer, shorter = sorted((event.one, event.other), key=len, reverse=True)
    dim = next((i for i, size in enumerate(longer) if size == 1 and longer[:i] + longer[i + 1 :] == shorter), None)
    if dim is None:
        return f"reshape the tensor of shape {list(shorter)} with .view({', '.join(map(str, longer))})"
    return f"squeeze({dim}) the tensor of shape {list(longer)}, or unsqueeze({dim}) the tensor of shape {list(shorter)}"
