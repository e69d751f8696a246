"""A variable, list or buffer keeps more and more old graphs alive.

Why it matters
    A tensor that the network computed holds its whole graph, with all saved activations. Added to a running total,
    appended to a list of losses or used in a moving average without detach(), it keeps the graphs of all steps since
    the start. Memory grows until the run fails, hours later.

Bad
    total = 0
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss

Good
    total = 0
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()

The finding is at the line that keeps the tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.graphs.memory import size
from gradtrace.model.events import Event, Growth
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import of_file
from gradtrace.source import carrying


class GraphGrowth(Rule):
    id = "graph-growth"
    level = Level.WARNING
    events = (Growth,)
    needs = Needs(calls=6)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Growth):
            return []
        holder = event.holder.replace("[]", "[...]")
        saved = f" with {size(event.bytes)} of saved tensors" if event.bytes else ""
        held = f"{event.nodes:,} nodes{saved}"
        grows = (
            f", {event.per_step:,} more nodes with each step" if event.per_step else ", and more with every iteration"
        )
        kept = _kept(event)
        return self.finding(
            kept or event.made,
            f"`{holder}` keeps the graphs of earlier steps alive: {held}{grows}",
            "keep the value without its graph: .item() for a number, .detach() for a tensor; "
            "or compute it under torch.no_grad()",
            ((event.made, f"the newest tensor in `{holder}` was computed here"),) if kept else (),
        )


def _kept(event: Growth) -> Stack:
    running = {site.function for site in event.made}
    for path in event.files:
        line = carrying.kept_at(path, event.holder, running)
        if line:
            return of_file(path, line)
    return ()
