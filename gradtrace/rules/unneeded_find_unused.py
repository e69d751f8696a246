"""find_unused_parameters=True makes DistributedDataParallel search the graph in each step, and finds nothing.

Why it matters
    With find_unused_parameters=True each forward walks the whole graph to find parameters that will get no gradient, and
    the reduction cannot be laid out by the order of the last backward call. Where every parameter is used in every step
    this costs time and gives nothing.

Bad
    model = DDP(nn.Linear(8, 1), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is where the module is wrapped. It is a note: a later epoch may leave out a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.ranks import Job, ReplicaUse
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.between_ranks import is_whole, side_by_side
from gradtrace.rules.judging.evidence import REGULARLY


class UnneededFindUnused(Rule):
    id = "unneeded-find-unused"
    level = Level.NOTE
    events = (Job,)
    reads = (ReplicaUse,)
    needs = Needs(calls=REGULARLY)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Job) or not is_whole(event):
            return []
        found: list[Finding] = []
        for uses in side_by_side(event, ReplicaUse):
            if all(use.finds_unused and not use.unused and use.reduced >= REGULARLY for use in uses):
                found += self._tell(uses[0])
        return found

    def _tell(self, use: ReplicaUse) -> list[Finding]:
        return self.finding(
            use.made,
            f"find_unused_parameters=True found nothing: each of the {use.calls} backward calls gave a gradient to all "
            f"{use.parameters} parameters of `{use.kind}`, on every rank",
            "leave it out: the search costs a walk through the graph in each step",
        )
