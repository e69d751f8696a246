"""A statement has no effect, since nothing takes its result.

Why it matters
    detach() returns a new tensor and leaves the one that it is called on as it was. torch.no_grad() alone in a line creates
    a context that nothing enters, and `loss.backward` without parentheses only names the method. The code reads as if the
    graph were cut, the gradients off or the gradient computed; none of it happens.

Bad
    state = torch.zeros(16, 1)
    for x, y in data:
        state.detach()
        state = model(x) + 0.5 * state
        optimizer.zero_grad()
        loss_fn(state, y).backward()
        optimizer.step()

Good
    state = torch.zeros(16, 1)
    for x, y in data:
        state = state.detach()
        state = model(x) + 0.5 * state
        optimizer.zero_grad()
        loss_fn(state, y).backward()
        optimizer.step()

The finding is at the statement. A call of detach() is reported where it ran on a tensor that requires grad, but not at the
top of a file where nothing reads that tensor afterwards: such a line only shows a value.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.truths import DiscardedResult
from gradtrace.rules.base import Rule
from gradtrace.source import discarding

_MESSAGES = {
    "detach": "`{text}` returns a new tensor, which this statement discards: `{owner}` keeps its graph",
    "context": "`{text}` creates a context that nothing enters: gradients stay as they are",
    "uncalled": "`{text}` names a method and does not call it",
}
_HELP = {
    "detach": "write `{owner} = {text}`, or call `{owner}.detach_()`",
    "looped": "call `{owner}.detach_()`: to assign to `{owner}` would change only the loop variable",
    "context": "write `with {text}:` around the code",
    "uncalled": "call it: `{text}()`",
}


class DiscardedResultRule(Rule):
    id = "discarded-result"
    level = Level.WARNING
    events = (DiscardedResult,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, DiscardedResult):
            return []
        owner = event.text.rpartition(".")[0]
        words = {"text": event.text, "owner": owner}
        looped = event.kind == "detach" and discarding.is_loop_variable(event.stack[0], owner)
        return self.finding(
            event.stack,
            _MESSAGES[event.kind].format(**words),
            _HELP["looped" if looped else event.kind].format(**words),
            ((event.stack[1:], "called from here"),),
        )
