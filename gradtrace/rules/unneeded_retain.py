"""A backward call keeps its graph (retain_graph=True or create_graph=True), and nothing uses that graph again.

Why it bites
    The saved tensors of the whole graph stay in memory as long as any tensor of it is held, often through the next
    iteration's forward pass: the peak doubles. And a graph that is entered again by mistake no longer says so.

Bad
    loss.backward(retain_graph=True)
    optimizer.step()

Good
    loss.backward()
    optimizer.step()

Where several losses share a graph, all but the last call need retain_graph=True.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from gradtrace.model.events import Backward, End, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression

#: retaining calls of one line that are followed up
_FOLLOWED = 64


class _Line:
    """What became of the graphs that the retaining calls of one line kept."""

    def __init__(self, first: Backward) -> None:
        self.first = first
        #: calls not entered yet: number to whether the graph outlived the turn
        self.pending: OrderedDict[int, bool] = OrderedDict()
        self.needed = 0
        self.calls = 0


class UnneededRetain(Rule):
    id = "unneeded-retain"
    level = Level.WARNING

    def __init__(self) -> None:
        self._lines: dict[Stack, _Line] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Backward):
            self._follow(event)
        elif isinstance(event, End):
            return [finding for line in self._lines.values() for finding in self._judge(line)]
        return []

    def _follow(self, event: Backward) -> None:
        for line in self._lines.values():
            for number in event.entered:
                line.needed += line.pending.pop(number, None) is not None
        if not (event.retain_graph or event.create_graph) or event.error is not None:
            return
        line = self._lines.setdefault(event.stack[:1], _Line(event))
        for number in line.pending:
            line.pending[number] |= number in event.held
        line.calls += 1
        line.pending[event.number] = False
        if len(line.pending) > _FOLLOWED:
            line.pending.popitem(last=False)

    def _judge(self, line: _Line) -> list[Finding]:
        outlived = sum(line.pending.values())
        if not line.pending or (line.needed and not outlived):
            return []
        option = "create_graph=True" if line.first.create_graph else "retain_graph=True"
        request = expression(line.first.stack, line.first.root)
        if line.needed:
            message = (
                f"{option} keeps the graph of {request} after the last call that needs it: {line.needed} of {line.calls} calls "
                f"were followed by another, {outlived} graphs were still held in the next turn for nothing"
            )
            mend = f"keep the graph for all but the last call: `{option.replace('True', 'i + 1 < n')}`"
        else:
            message = f"{option} keeps the graph of {request} in memory, but no later call uses it"
            mend = f"drop {option}"
        return self.finding(line.first.stack, message, mend)
