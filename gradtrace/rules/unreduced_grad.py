"""Steps use gradients that DistributedDataParallel has not reduced, so that each rank trains a model of its own.

Why it matters
    DistributedDataParallel averages gradients over the ranks in the backward call of an output that its own forward gave.
    A forward through `model.module`, or a backward call within `no_sync()`, leaves the gradients as they are on each rank:
    the steps then use local gradients, the copies of the model drift apart, and the job trains as many small-batch models as
    it has ranks, of which one is saved.

Bad
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model.module(x), y).backward()
        optimizer.step()

Good
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the backward call, where the gradients that steps used did differ between ranks. Gradients that the script
reduces itself, and micro-batches within `no_sync()` before one outside of it, are no fault.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.ranks import Digests, Job, ReplicaUse
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.between_ranks import is_whole, used_locally
from gradtrace.rules.judging.evidence import TWICE

_WHY = {
    "no_sync": (
        "runs within no_sync()",
        "leave no_sync() for the last backward call before each step",
    ),
    "bypassed": (
        "runs on an output that did not come from the DistributedDataParallel module",
        "call the wrapper itself, `model(x)`, not `model.module(x)` or a method of the wrapped module",
    ),
}


class UnreducedGrad(Rule):
    id = "unreduced-grad"
    level = Level.ERROR
    events = (Job,)
    reads = (Digests, ReplicaUse)
    needs = Needs(steps=TWICE)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Job) or not is_whole(event):
            return []
        return [finding for uses in used_locally(event) for finding in self._tell(uses[0])]

    def _tell(self, use: ReplicaUse) -> list[Finding]:
        reason, fix = _WHY.get(use.why, _WHY["bypassed"])
        often = f"all {use.steps}" if use.local_steps == use.steps else f"{use.local_steps} of {use.steps}"
        return self.finding(
            use.unreduced,
            f"this backward call {reason}, so the gradients of `{use.kind}` are not reduced: {often} steps use gradients "
            "that differ between ranks",
            fix,
            ((use.step, "applied here"), (use.made, "the module is wrapped here")),
        )
