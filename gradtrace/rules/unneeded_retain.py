"""A backward call keeps its graph (retain_graph=True or create_graph=True), and nothing uses that graph again.

Why it matters
    The saved tensors of the whole graph stay in memory as long as any tensor of it is alive, often through the next
    iteration's forward pass: peak memory doubles. And an accidental second backward() no longer raises an error.

Bad
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()

Good
    for x, y in data:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()

Where several losses share a graph, all but the last call need retain_graph=True. Where one line makes all of them, in a
loop or a helper, the option is right for the others, and only the last graph is kept too long: this is a note.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradtrace.model.events import Backward, End, Event, Step
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.evidence import PENDING, TWICE
from gradtrace.rules.judging.intent import later_calls
from gradtrace.rules.judging.naming import expression
from gradtrace.source import questions


@dataclass(slots=True)
class _RetainingLine:
    """What became of the graphs that the retaining calls of one line kept."""

    stack: Stack
    option: str
    root: str
    calls: int = 0
    #: calls not entered since: number to whether an optimizer made a step while the graph was kept
    pending: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    #: of those entered: by a later call of this line, or by other calls
    by_itself: int = 0
    by_others: int = 0

    @property
    def outlived(self) -> int:
        return sum(self.pending.values())


class UnneededRetain(Rule):
    id = "unneeded-retain"
    level = Level.WARNING
    events = (Backward, Step, End)

    def __init__(self) -> None:
        self._lines: dict[Stack, _RetainingLine] = {}
        #: by the number of a call whose graph is pending: its line
        self._pending: dict[int, _RetainingLine] = {}
        #: the lines that backward calls came from
        self._ran: set[tuple[str, int]] = set()

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, Backward):
            self._ran.update(site.place for site in event.stack)
            self._follow(event)
        elif isinstance(event, Step):
            for number in event.held:
                if number in self._pending:
                    self._pending[number].pending[number] = True
        elif isinstance(event, End):
            return [finding for line in self._lines.values() for finding in self._judge(line, event)]
        return []

    def _follow(self, event: Backward) -> None:
        place, option = _asked(event) if (event.retain_graph or event.create_graph) and not event.error else ((), "")
        for number in event.entered:
            entered = self._pending.pop(number, None)
            if entered is None:
                continue
            del entered.pending[number]
            if entered.stack[:1] == place[:1]:
                entered.by_itself += 1
            else:
                entered.by_others += 1
        if not place:
            return
        line = self._lines.setdefault(place[:1], _RetainingLine(place, option, event.root))
        line.calls += 1
        line.pending[event.number] = False
        self._pending[event.number] = line
        if len(line.pending) > PENDING:
            oldest, _ = line.pending.popitem(last=False)
            del self._pending[oldest]

    def _judge(self, line: _RetainingLine, end: End) -> list[Finding]:
        # the run may have ended before the call that needs these
        open_calls = [number for number in end.held if number in line.pending]
        if line.calls == len(open_calls):
            return []
        option, request = f"{line.option}=True", expression(line.stack, line.root)
        if not line.by_itself and not line.by_others:
            message = f"{option} keeps the graph of {request} in memory, but no later call uses it"
            return self.finding(line.stack, message, f"remove {option}", level=self._level(line.stack[0]))
        if line.by_others or line.outlived < TWICE or line.option != "retain_graph":
            return []
        return self.finding(
            line.stack,
            f"{option} keeps the graph of {request} after the last call that needs it: of {line.calls} calls "
            f"{line.by_itself} were followed by another, but {line.outlived} graphs were held at a later step and never used again",
            "keep the graph for all but the last call of each iteration: `retain_graph=i + 1 < n`",
            level=Level.NOTE,
        )

    def _level(self, site: Site) -> Level:
        """A call that was not made in this run may need the graph in another."""
        later = ((site.path, line) for line in later_calls(site, ("backward", "grad")))
        return self.level if self._ran.issuperset(later) else Level.NOTE


def _asked(event: Backward) -> tuple[Stack, str]:
    """The frames from the line that keeps the graph, and the option; empty where a library keeps it."""
    option = "create_graph" if event.create_graph else "retain_graph"
    name = option
    for depth, site in enumerate(event.stack):
        value = questions.passed(site, name)
        if not value:  # a library's choice, or what the parameter of a function is by default
            return (event.stack, option) if depth else ((), "")
        if not value.isidentifier() or value == "True":
            return event.stack[depth:], option
        name = value
    return event.stack, option
