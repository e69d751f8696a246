"""A loss is computed on gathered tensors through which no gradient flows.

Why it matters
    torch.distributed.all_gather copies values into buffers that have no graph. A contrastive loss over the gathered features
    looks right and gives no gradient for them: what the other ranks' samples say about the features, and often the features
    themselves, is lost.

Bad
    model = DDP(nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        features = model(x)
        gathered = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, features)
        loss = (features @ torch.cat(gathered).T).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Good
    model = DDP(nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in data:
        features = model(x)
        gathered = torch.distributed.nn.functional.all_gather(features)
        loss = (features @ torch.cat(gathered).T).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

The finding is at the all_gather. It is a note where the loss uses the tensor itself beside the gathered ones, which gives a part
of the gradient. Putting it back (`gathered[rank] = features`), and gathering under no_grad, are no fault.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.ranks import GatheredConstant
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import expression


class GatheredConstantRule(Rule):
    id = "gathered-constant"
    level = Level.WARNING
    events = (GatheredConstant,)
    covers = frozenset({"unreached-parameter", "no-graph"})

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, GatheredConstant):
            return []
        root = expression(event.backward, event.root)
        rest = "only what uses the tensor itself gives a gradient" if event.beside else "no gradient flows back to it"
        return self.finding(
            event.stack,
            f"{root} is computed from what `{event.operation}` gave for a tensor with a graph, as constants: {rest}",
            "use torch.distributed.nn.functional.all_gather, or put the rank's own tensor back with gathered[rank] = tensor",
            ((event.backward, "the backward call of that loss"),),
            Level.NOTE if event.beside else None,
        )
