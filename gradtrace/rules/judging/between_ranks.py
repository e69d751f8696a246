"""Facts of one kind from all ranks of a job, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gradtrace.model.ranks import Account, Digests, Exchange, Job, ReplicaUse
from gradtrace.rules.judging.evidence import TWICE

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class RanksCompared:
    """The digests of one optimizer on all ranks: by step, the indices of the names that are not equal everywhere."""

    of_rank: tuple[Digests, ...]
    different: dict[int, tuple[int, ...]]

    @property
    def first(self) -> Digests:
        """Those of the first rank."""
        return self.of_rank[0]

    @property
    def last(self) -> tuple[int, ...]:
        """What differed at the last look that all ranks have made after a step."""
        steps = [step for step in self.different if step]
        return self.different[max(steps)] if steps else ()

    @property
    def at_start(self) -> tuple[int, ...]:
        """What differed before the first step."""
        return self.different.get(0, ())

    def names(self, indices: Sequence[int]) -> tuple[str, ...]:
        """The user's names of these."""
        return tuple(self.first.names[at] for at in indices if at < len(self.first.names))


def is_whole(job: Job) -> bool:
    """Whether every rank has handed over what it saw, and came to its own end."""
    return not job.missing and len(job.accounts) == job.size and not any(one.ended.status for one in job.accounts)


def facts(account: Account, kind: type[F]) -> list[F]:
    """The facts of this kind, in the order of the rank's run."""
    return [fact for fact in account.facts if isinstance(fact, kind)]


def side_by_side(job: Job, kind: type[F]) -> list[tuple[F, ...]]:
    """The first fact of this kind on each rank, then the second, as long as all ranks have one."""
    rows = [facts(account, kind) for account in job.accounts]
    return list(zip(*rows, strict=False)) if rows else []


def compared(job: Job, what: str) -> list[RanksCompared]:
    """The "parameters" or "gradients" of each optimizer that all ranks have with the same shapes."""
    rows = [_by_optimizer(account, what) for account in job.accounts]
    found = []
    for order in sorted(set.intersection(*(set(row) for row in rows))) if rows else ():
        digests = tuple(row[order] for row in rows)
        if len({(one.layout, len(one.names)) for one in digests}) == 1 and not any(one.sharded for one in digests):
            found.append(RanksCompared(digests, _different(digests)))
    return found


def _by_optimizer(account: Account, what: str) -> dict[int, Digests]:
    return {one.optimizer: one for one in facts(account, Digests) if one.what == what}


def _different(digests: Sequence[Digests]) -> dict[int, tuple[int, ...]]:
    by_step = [dict(zip(one.steps, one.values, strict=True)) for one in digests]
    found = {}
    for step in sorted(set.intersection(*(set(one) for one in by_step))):
        values = {one[step] for one in by_step}
        columns = zip(*(row.split(",") for row in values), strict=False) if len(values) > 1 else ()
        found[step] = tuple(at for at, column in enumerate(columns) if len(set(column)) > 1)
    return found


def exchanged(job: Job) -> int:
    """Elements that the script itself passed between ranks, as its first rank counts them."""
    return max((one.elements for account in job.accounts for one in facts(account, Exchange)), default=0)


def used_locally(job: Job) -> list[tuple[ReplicaUse, ...]]:
    """The uses, by rank, of each wrapper whose gradients steps used though they were not reduced, and did differ."""
    differ = False
    for one in compared(job, "gradients"):
        differ = differ or any(one.different.values())
    if not differ:
        return []
    return [uses for uses in side_by_side(job, ReplicaUse) if all(map(_is_local, uses))]


def _is_local(use: ReplicaUse) -> bool:
    return bool(use.local_steps and use.steps >= TWICE and use.whole)
