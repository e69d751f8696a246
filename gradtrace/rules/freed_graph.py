"""backward() or autograd.grad() runs through a graph that an earlier call has freed.

Why it bites
    A backward call frees what the graph saved, unless retain_graph=True. If a tensor of that graph gets into the next
    computation (a hidden state, a reused `fake`, a loss built before the loop), the next call fails with "Trying to
    backward through the graph a second time" -- at the call, not at the line that carried the tensor over. Where the graph
    saved nothing (only additions), there is no error, and the old part silently gets its gradient twice.

Bad
    for x, y in chunks:
        out, state = rnn(x, state)         # the state drags the last chunk's graph along
        loss_fn(out, y).backward()

Good
    for x, y in chunks:
        out, state = rnn(x, state.detach())
        loss_fn(out, y).backward()

The finding is at the line where the freed graph enters the new computation; or at the line that built the shared part,
where nothing else is in the graph; or, where nothing new was built, at the call that freed it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model import source
from gradtrace.model.events import Backward, Event, Reentry
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import carried_by_attribute, expression, shared_depth, within

_ERROR = "backward through the graph a second time"


class FreedGraph(Rule):
    id = "freed-graph"
    level = Level.ERROR

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Backward):
            return []
        failed = event.error is not None and _ERROR in event.error
        freed = [one for one in event.reentries if one.freed]
        if failed and not freed:
            return self._unexplained(event)
        if not failed:
            freed = [one for one in freed if not one.view and event.error is None]
        if not freed:
            return []
        return self._explain(event, _cause(freed), failed)

    def _explain(self, event: Backward, found: Reentry, failed: bool) -> list[Finding]:
        line, why, mend = _diagnose(event, found)
        outcome = "fails" if failed else "runs through it once more without an error, because it saved nothing"
        request = expression(event.stack, event.root)
        return self.finding(
            line,
            f"{why}; the {_call(event.request)} on {request} {outcome}",
            mend,
            (
                (found.entry, "the freed graph enters the new computation here"),
                (found.built, f"this part of the graph ({found.op}) was built here"),
                (found.call_stack, "this call freed it"),
                (event.stack, "this call needs it again"),
                (line[1:], "called from here"),
            ),
            Level.ERROR if failed else Level.WARNING,
        )

    def _unexplained(self, event: Backward) -> list[Finding]:
        return self.finding(
            event.stack,
            f"{expression(event.stack, event.root)} hangs on a graph that an earlier call has freed",
            "compute that part anew before this call, detach() it, or pass retain_graph=True to the first call",
        )


def _cause(freed: list[Reentry]) -> Reentry:
    """The entry to tell of: one that computes something, and the first of the old graph's makers."""
    return min(freed, key=lambda one: (one.view and not one.built, not one.entry))


def _diagnose(event: Backward, found: Reentry) -> tuple[Stack, str, str]:
    """The line to blame, what happened there, and the mend."""
    root = expression(event.stack, found.call_root)
    freed_by = f"backward of {root}" if found.call_root else "an earlier call"
    if found.entered_later and found.own_leaves:
        carried = carried_by_attribute(found.entry, found.built)
        line = carried or within(found.entry, shared_depth(found.entry, event.stack))
        return (
            line,
            f"a tensor of the graph that {freed_by} has freed is carried into a new computation",
            "detach() what is carried over (`state = state.detach()`), or, if the gradient should flow through both, "
            "make one loss of them and call backward once",
        )
    if found.entered_later or _apart(event, found):
        line = within(found.built, shared_depth(found.built, event.stack))
        return (
            line,
            f"this part of the graph is built once, but {freed_by} has freed it and nothing computes it anew",
            "compute it again before each backward call (inside the loop or closure): keep the inputs, not the results",
        )
    if found.foreign and found.entry:
        line = within(found.entry, shared_depth(found.entry, found.built))
        return (
            line,
            f"{expression(event.stack, event.root)} also hangs on the graph of {root}, whose backward frees it",
            "detach() what enters here (or compute it under torch.no_grad()), since this loss trains other parameters",
        )
    return (
        found.call_stack,
        f"this call frees the graph that {expression(event.stack, event.root)} still needs",
        "add the losses up and call backward once (or ask autograd.grad for all inputs in one call); "
        "or pass retain_graph=True here, to the *first* call",
    )


def _apart(event: Backward, found: Reentry) -> bool:
    """The same line calls backward on the same root again and again: the graph was built before that loop."""
    again = not found.entry and event.request == "backward" and found.call_stack == event.stack
    depth = shared_depth(found.built, event.stack)
    if not again or not depth:
        return False
    here, made = event.stack[-depth], found.built[-depth]
    loop = source.loop(here.path, here.line)
    return loop is not None and not source.in_loop(loop, made.line)


def _call(request: str) -> str:
    return "autograd.grad call" if request == "grad" else "backward call"
