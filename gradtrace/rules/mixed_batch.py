"""A computation along the wrong dimension mixes the samples of a batch.

Why it matters
    Softmax over dimension 0 of [batch, time] makes the samples of a batch compete; nn.LSTM without batch_first treats
    the batch as time and carries its state from one sample to the next. Shapes match, training runs, and the result of
    one sample depends on the other samples of the batch.

Bad
    lstm = nn.LSTM(8, 16)
    out, _ = lstm(x)  # x: [batch, time, 8]
    loss_fn(head(out[:, -1]), y).backward()

Good
    lstm = nn.LSTM(8, 16, batch_first=True)
    out, _ = lstm(x)  # x: [batch, time, 8]
    loss_fn(head(out[:, -1]), y).backward()

A reshape that swaps the sizes of batch and time (`x.view(time, batch, -1)`) is reported as well. The finding is at the
softmax, the call of the recurrent network or attention, or the reshape, and only where the rest of the code shows which
dimension is intended.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, MixedBatch
from gradtrace.model.finding import SAVED_VALUES, Finding, Level, Needs
from gradtrace.rules.base import Rule


class MixedBatchRule(Rule):
    id = "mixed-batch"
    level = Level.WARNING
    events = (MixedBatch,)
    needs = Needs(abilities=(SAVED_VALUES,))

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, MixedBatch):
            return []
        message, fix = _WORDS[event.kind](event)
        if event.kind == "sequence, batch first":  # the module is set up correctly, and its output read wrong
            return self.finding(event.taken or event.stack, message, fix, ((event.stack, f"the {event.op} runs here"),))
        return self.finding(
            event.stack,
            message,
            fix,
            (
                (event.taken, "the batch dimension is indexed here as if it were time"),
                (event.stack[1:], "called from here"),
            ),
        )


def _softmax(event: MixedBatch) -> tuple[str, str]:
    return (
        f"softmax runs over dimension 0 of {list(event.shape)}, but its weights are summed over another dimension, "
        f"separately for each of the {event.shape[0]} entries: these entries compete with each other",
        "use softmax(dim=-1), the dimension that is summed over",
    )


def _rows(event: MixedBatch) -> tuple[str, str]:
    return (
        f"softmax runs over dimension 0 of {list(event.shape)}, but one entry of each of the {event.shape[0]} rows is used as "
        "the probability of its class: the samples compete with each other instead of the classes",
        "use dim=1, the dimension of the classes",
    )


def _sequence(event: MixedBatch) -> tuple[str, str]:
    batch_first = event.kind == "sequence, batch first"
    taken = 0 if batch_first else 1
    return (
        f"{'the' if batch_first else 'this'} {event.op} treats dimension 0 of {list(event.shape)} as the "
        f"{'batch' if batch_first else 'time'}, "
        f"but {event.read} is read from dimension {taken} of its output, the batch dimension",
        "read the last step with out[:, -1]" if batch_first else "pass batch_first=True to the module",
    )


def _loaded(event: MixedBatch) -> tuple[str, str]:
    return (
        f"this {event.op} treats dimension 0 of {list(event.shape)} as the time, but it is the batch dimension of a "
        "DataLoader",
        "pass batch_first=True to the module",
    )


def _reshaped(event: MixedBatch) -> tuple[str, str]:
    what = f"the {event.op}" if event.op else "a tensor"
    split = len(event.result) > len(event.shape)
    return (
        f"{what} of shape {list(event.shape)} is reshaped to {list(event.result)}, which moves no element: each row of the "
        "result combines several samples",
        "split the last dimension first, then permute: x.view(batch, time, parts, -1).permute(2, 0, 1, 3)"
        if split
        else "swap the dimensions first: transpose(0, 1), then reshape() where it is still needed",
    )


_WORDS = {
    "softmax": _softmax,
    "rows": _rows,
    "sequence": _sequence,
    "sequence, batch first": _sequence,
    "loaded": _loaded,
    "reshaped": _reshaped,
}
