"""Ranks that should hold the same parameters hold different ones after a step.

Why it matters
    Data parallel training keeps one model in many copies. Where a parameter is not in the copy that
    DistributedDataParallel wraps, where the copies start with different values, or where one rank steps and another does
    not, the copies drift apart: the reduced gradients fit none of them, and the checkpoint is that of one rank.

Bad
    model, scale = DDP(nn.Linear(8, 1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(scale * model(x), y).backward()
        optimizer.step()

Good
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.scale = nn.Linear(8, 1), nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.scale * self.linear(x)

    model = DDP(Scaled())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the step, or where the model is made if its copies differ from the beginning. Checksums of the parameters are
compared after steps 1, 2, 4, 8 and so on. Shards of one tensor, models of different shapes, and parameters that the script
itself averages are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.ranks import Digests, Exchange, Job, ReplicaUse
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.between_ranks import RanksCompared, compared, exchanged, facts, is_whole, used_locally
from gradtrace.rules.judging.blame import outside_constructors
from gradtrace.rules.judging.evidence import TWICE
from gradtrace.rules.judging.naming import names_of


class RankDivergence(Rule):
    id = "rank-divergence"
    level = Level.ERROR
    events = (Job,)
    reads = (Digests, Exchange, ReplicaUse)
    needs = Needs(steps=1)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Job) or not is_whole(event):
            return []
        found: list[Finding] = []
        gradients = {one.first.optimizer: one for one in compared(event, "gradients")}
        for one in compared(event, "parameters"):
            found += self._unequal_steps(event, one) or self._different(event, one, gradients.get(one.first.optimizer))
        return found

    def _unequal_steps(self, job: Job, one: RanksCompared) -> list[Finding]:
        """Some ranks step, and others go backward as often and do not."""
        totals = [digests.total for digests in one.of_rank]
        calls = [account.calls for account in job.accounts]
        if max(totals) - min(totals) < TWICE or max(calls) - min(calls) > 1 or one.at_start:
            return []
        most, least = (totals.index(bound(totals)) for bound in (max, min))
        step = one.of_rank[most].step
        return self.finding(
            step,
            f"`{one.first.kind}` makes {totals[most]} steps on rank {job.accounts[most].rank} and {totals[least]} on rank "
            f"{job.accounts[least].rank}, though both make {calls[least]} backward calls: their parameters differ from "
            "then on",
            "step on every rank: an `if rank == 0` belongs around logging and saving alone",
        )

    def _different(self, job: Job, one: RanksCompared, gradients: RanksCompared | None) -> list[Finding]:
        differ = set(one.last)
        if not differ:
            return []
        by_gradient = set(gradients.last) if gradients is not None else set()
        replicated = set(one.first.replicated)
        if not by_gradient & differ:
            return self._despite_equal_gradients(one, differ)
        if exchanged(job) >= one.first.elements or used_locally(job):
            return []
        if replicated:
            outside = differ - replicated
            return self._left_out(one, outside) if outside and not differ & replicated else []
        if not any(facts(account, ReplicaUse) for account in job.accounts):
            return self._never_reduced(job, one)
        return []

    def _despite_equal_gradients(self, one: RanksCompared, differ: set[int]) -> list[Finding]:
        names = _named(one, differ)
        if differ & set(one.at_start):
            return self.finding(
                outside_constructors(one.first.born) or one.first.made,
                f"{names} do not start with the same values on all ranks, though the gradients are reduced: each rank trains "
                "a different model",
                "call torch.manual_seed with the same seed on every rank before the model is made, or broadcast its "
                "state from rank 0",
                ((one.first.step, "stepped here, with equal gradients"),),
            )
        return self.finding(
            one.first.step,
            f"{names} are not equal on all ranks, though they started equal and their gradients are: something else changes "
            "them on some ranks only",
            "make every change of a parameter on all ranks, or broadcast it afterwards",
        )

    def _left_out(self, one: RanksCompared, outside: set[int]) -> list[Finding]:
        return self.finding(
            one.first.step,
            f"{_named(one, outside)} are not in the DistributedDataParallel module, so their gradients are not reduced, and "
            "this step makes them differ between ranks",
            "make them part of the module before it is wrapped, and use them in its forward",
            ((one.first.made, "the optimizer gets them here"),),
        )

    def _never_reduced(self, job: Job, one: RanksCompared) -> list[Finding]:
        if one.at_start and any(account.facts and exchanged(job) for account in job.accounts):
            return []
        return self.finding(
            one.first.step,
            f"{_named(one, set(one.last))} differ between ranks after this step: nothing reduces the gradients, and each rank "
            "trains by itself",
            "wrap the model in DistributedDataParallel, and call the wrapper",
            ((outside_constructors(one.first.born) or one.first.made, "the model is made here"),),
            Level.WARNING if one.at_start else None,
        )


def _named(one: RanksCompared, indices: set[int]) -> str:
    names = tuple(name for name in one.names(sorted(indices)) if name)
    return names_of(names, len(indices))
