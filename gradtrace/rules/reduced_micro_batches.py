"""Gradient accumulation reduces the gradients in each micro-batch, though only the last one needs it.

Why it matters
    Every backward call of a DistributedDataParallel module sends all gradients between the ranks. With accumulation over
    N micro-batches, N - 1 of these reductions are for nothing: the gradients of the last one, reduced once, give the same
    sum. `no_sync()` leaves them out.

Bad
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (x, y) in enumerate(data):
        (loss_fn(model(x), y) / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()

Good
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (x, y) in enumerate(data):
        with contextlib.nullcontext() if i % 2 == 1 else model.no_sync():
            (loss_fn(model(x), y) / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()

The finding is at the backward call, and a note: the result is right. In the good example the forward stands within no_sync(),
too, as it must.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.ranks import Job, ReplicaUse
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.between_ranks import is_whole, side_by_side
from gradtrace.rules.judging.evidence import REGULARLY, mostly

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"), (1, "bytes"))


class ReducedMicroBatches(Rule):
    id = "reduced-micro-batches"
    level = Level.NOTE
    events = (Job,)
    reads = (ReplicaUse,)
    needs = Needs(steps=REGULARLY)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Job) or not is_whole(event):
            return []
        found: list[Finding] = []
        for uses in side_by_side(event, ReplicaUse):
            if all(use.windows >= REGULARLY and mostly(use.crowded, use.windows) for use in uses):
                found += self._tell(uses[0])
        return found

    def _tell(self, use: ReplicaUse) -> list[Finding]:
        size, unit = next((size, unit) for size, unit in _UNITS if use.bytes >= size or size == 1)
        return self.finding(
            use.backward,
            f"this backward call reduces the gradients of `{use.kind}` {use.most} times for each step: "
            f"{use.most - 1} of {use.most} reductions, {use.bytes / size:.3g} {unit} each, could be left out",
            "put forward and backward of all micro-batches but the last within model.no_sync()",
            ((use.step, "the step that uses them"),),
        )
