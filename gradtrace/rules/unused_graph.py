"""A model in evaluation mode builds a graph for each batch, and nothing ever backpropagates it.

Why it matters
    model.eval() changes dropout and batch norm, but not autograd: each forward pass still saves its activations for a
    backward pass that never happens. Evaluation is slower and, with large batches, runs out of memory.

Bad
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    model.eval()
    for x, y in batches(10):
        print(loss_fn(model(x), y).item())

Good
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in batches(10):
            print(loss_fn(model(x), y).item())

The finding is at the call of the model. Single forward passes, and those of a model in training mode, are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, UnusedGraph
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule


class UnusedGraphRule(Rule):
    id = "unused-graph"
    level = Level.WARNING
    events = (UnusedGraph,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, UnusedGraph):
            return []
        return self.finding(
            event.stack,
            f"{event.passes} forward passes of {event.kind}, in evaluation mode, build a graph of about {event.nodes} "
            "nodes each, and nothing ever backpropagates them",
            "evaluate under torch.no_grad(): `with torch.no_grad():` around the loop, or @torch.no_grad() on the function",
            ((event.stack[1:], "called from here"),),
        )
