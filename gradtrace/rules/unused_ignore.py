"""A `# gradtrace: ignore` comment silences no finding.

Why it matters
    `# gradtrace: ignore` without a rule would hide every later finding on that line, so it hides nothing. A misspelled
    rule, or a comment that stays after the fix, makes readers believe in a bug that does not exist, and hides the next
    one.

Bad
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()  # gradtrace: ignore
        optimizer.step()

Good
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward(retain_graph=True)  # gradtrace: ignore[unneeded-retain] -- plotted later
        optimizer.step()

The finding is at the comment. A comment for a rule that does not judge in this run, and any comment for a rule in a run
that ended early, is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule


class UnusedIgnore(Rule):
    id = "unused-ignore"
    level = Level.NOTE
    events = ()
    needs = Needs(calls=0)

    def see(self, event: Event) -> Iterable[Finding]:
        """Nothing: comments are looked at when all findings are there."""
        return ()
