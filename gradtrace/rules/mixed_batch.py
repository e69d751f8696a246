"""A computation along the wrong dimension lets the samples of a batch see each other.

Why it bites
    Softmax over dimension 0 of [batch, time] makes the samples of a batch compete; nn.LSTM without batch_first takes
    the batch for time and carries its state from one sample to the next. Shapes fit, training runs, and the result
    depends on who else is in the batch.

Bad
    lstm = nn.LSTM(8, 16)
    out, _ = lstm(x)  # x: [batch, time, 8]
    loss_fn(head(out[:, -1]), y).backward()

Good
    lstm = nn.LSTM(8, 16, batch_first=True)
    out, _ = lstm(x)  # x: [batch, time, 8]
    loss_fn(head(out[:, -1]), y).backward()

The finding is at the softmax or the recurrent call, and only where the rest of the code shows which dimension is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, MixedBatch
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule


class MixedBatchRule(Rule):
    id = "mixed-batch"
    level = Level.WARNING

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, MixedBatch):
            return []
        shape, called = list(event.shape), (event.stack[1:], "called from here")
        if event.kind == "softmax":
            return self.finding(
                event.stack,
                f"softmax over dimension 0 of {shape}, but its weights are summed over another dimension, "
                f"for each of the {shape[0]} entries on its own: they compete with each other instead",
                "use softmax(dim=-1), the dimension that is summed over",
                (called,),
            )
        first = "batch" if _batch_first(event) else "time"
        taken = 0 if _batch_first(event) else 1
        return self.finding(
            event.stack,
            f"this {event.op} takes dimension 0 of {shape} for the {first}, "
            f"but the last step is read from dimension {taken} of its output, the batch's",
            "pass batch_first=True to the module" if taken else "read the last step with out[:, -1]",
            ((event.taken, "the last entry of the batch is read here, as if it were the last step"), called),
        )


def _batch_first(event: MixedBatch) -> bool:
    return event.kind == "recurrent, batch first"
