"""One rank leaves the training loop before the others, which then wait for it.

Why it matters
    Each backward call of a data parallel model is a meeting of all ranks. A rank whose loader has fewer batches, or that
    breaks out of the loop, does not come to the next one: the others wait until the timeout, half an hour by default, or
    fail when its process ends.

Bad
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (x, y) in enumerate(data):
        if rank == 1 and i == 2:
            break
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Join([model]):
        for i, (x, y) in enumerate(data):
            if rank == 1 and i == 2:
                break
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()

The finding is at the last backward call of the rank that left, where another rank began a further one and failed in it, or
does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.ranks import Account, Job
from gradtrace.rules.base import Rule

#: what the errors of communication say
_WAITING = ("gloo", "nccl", "peer", "timed out", "timeout", "connection", "recv", "store")


class LeftEarly(Rule):
    id = "left-early"
    level = Level.ERROR
    events = (Job,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Job):
            return []
        left = [one for one in event.accounts if one.ended.how in ("finished", "exit") and not one.ended.status]
        if not left:
            return []
        early = min(left, key=lambda one: one.calls)
        failed = [one for one in event.accounts if _waited(one) and one.calls > early.calls]
        hanging = [one for one in event.seen if one.calls > early.calls]
        if not early.calls or not (failed or hanging):
            return []
        late, calls = (failed[0].rank, failed[0].calls) if failed else (hanging[0].rank, hanging[0].calls)
        found = self.finding(
            early.last_call,
            f"rank {early.rank} leaves the loop after {early.calls} backward calls, and rank {late} begins number {calls}, "
            "in which it waits for it",
            "give all ranks the same number of batches (drop_last=True, DistributedSampler), or train within "
            "torch.distributed.algorithms.join.Join([model])",
            ((failed[0].last_call, f"rank {late} waits here"),) if failed else (),
        )
        return [_explaining(one, failed) for one in found]


def _waited(account: Account) -> bool:
    text = (account.ended.exception or "").lower()
    return any(word in text for word in _WAITING)


def _explaining(finding: Finding, failed: list[Account]) -> Finding:
    if not failed or failed[0].ended.exception is None:
        return finding
    return Finding(
        finding.rule,
        finding.level,
        finding.message,
        finding.help,
        finding.site,
        finding.related,
        error=failed[0].ended.exception.splitlines()[0],
    )
