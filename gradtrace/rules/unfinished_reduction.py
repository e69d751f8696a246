"""DistributedDataParallel waits for the gradient of a parameter that the forward did not use, and fails.

Why it matters
    DistributedDataParallel reduces gradients in buckets, when all parameters of a bucket have theirs. A parameter that a forward
    does not use gets none: the reduction stays unfinished, and the next forward raises "Expected to have finished reduction
    in the prior iteration". Where only some ranks skip the parameter, the others wait for them.

Bad
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.extra = nn.Linear(8, 1), nn.Linear(8, 1)

        def forward(self, x, wide=False):
            out = self.body(x)
            if wide:
                out = out + self.extra(x)
            return out

    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss_fn(model(x, wide=i % 2 == 0), y).backward()
        optimizer.step()

Good
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.extra = nn.Linear(8, 1), nn.Linear(8, 1)

        def forward(self, x, wide=False):
            out = self.body(x)
            if wide:
                out = out + self.extra(x)
            return out

    model = DDP(Net(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss_fn(model(x, wide=i % 2 == 0), y).backward()
        optimizer.step()

The finding is at the condition around the uses of the module that got no gradient, if its class uses it under a condition
alone; otherwise where the module is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.ranks import UnfinishedReduction
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import of_file
from gradtrace.rules.judging.naming import names_of
from gradtrace.source.branches import AttributeUse, attribute_use


class UnfinishedReductionRule(Rule):
    id = "unfinished-reduction"
    level = Level.ERROR
    events = (UnfinishedReduction,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, UnfinishedReduction):
            return []
        made = event.registered[0] if event.registered else ()
        use = _use(event, made)
        site: Stack = made
        if made and use.condition is not None:
            site = (*of_file(made[0].path, use.condition), *made[1:])
        why = "which this branch skipped" if use.condition is not None else "which the forward did not use"
        if not use.used and event.names:
            why = "which no method of its class uses"
        names = names_of(event.names, event.count) if event.names else "a parameter"
        return self.finding(
            site or event.called,
            f"DistributedDataParallel fails at the next forward: the last backward call gave no gradient to {names}, {why}",
            "use every parameter in each forward, or pass find_unused_parameters=True; a module that is never used is best "
            "removed",
            (
                (event.called, "the forward that fails"),
                (event.backward, "the backward call before"),
                (made, "made here"),
                (event.made, "wrapped here"),
            ),
        )


def _use(event: UnfinishedReduction, made: Stack) -> AttributeUse:
    """How the class uses the module that holds the first parameter without a gradient."""
    parts = event.names[0].split(".") if event.names else []
    for attribute in reversed(parts):
        found = attribute_use(made[0].path, made[0].line, attribute) if made else AttributeUse(None, True)
        if found.used:
            return found
    return AttributeUse(None, not parts)
