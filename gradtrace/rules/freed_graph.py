"""backward() or autograd.grad() runs through a graph that an earlier call freed.

Why it matters
    A backward call frees the saved tensors of the graph, unless retain_graph=True. If a tensor of that graph is used in
    the next computation (a hidden state, a reused `fake`, a loss built before the loop), the next call fails with "Trying
    to backward through the graph a second time" -- at the call, not at the line that carried the tensor over. Where the
    graph saved nothing (only additions), there is no error, and the gradient is computed with outdated values.

Bad
    state = None
    for x, y in chunks:
        out, state = rnn(x, state)  # the state keeps the graph of the previous chunk
        loss_fn(out, y).backward()

Good
    state = None
    for x, y in chunks:
        out, state = rnn(x, state)
        loss_fn(out, y).backward()
        state = state.detach()

The finding is at the line to fix: where a tensor of the freed graph is used in the new computation, or stored for it; at the
line that computes once what every call needs; or, where nothing new was computed, at the call that freed the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradtrace.model.events import Backward, Event, Reentry
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import Carried, at_line, carrier, maker, shared_depth, within
from gradtrace.rules.judging.naming import expression
from gradtrace.source import carrying, questions, syntax

_ERROR = "backward through the graph a second time"

#: operations that take one part of a tensor, and those that may stand between it and the root all the same
_PARTS = frozenset(
    "SelectBackward0 SliceBackward0 UnbindBackward0 IndexBackward0 IndexSelectBackward0 GatherBackward0 SplitBackward0 "
    "SplitWithSizesBackward0".split()
)
_PLAIN = _PARTS | frozenset(
    "SumBackward0 SumBackward1 MeanBackward0 MeanBackward1 SqueezeBackward0 SqueezeBackward1 ViewBackward0".split()
)


class FreedGraph(Rule):
    id = "freed-graph"
    level = Level.ERROR
    events = (Backward,)
    needs = Needs(calls=2)

    def __init__(self) -> None:
        #: calls that failed, and why: what they leave behind makes the next ones fail as well
        self._failed: set[Stack] = set()

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Backward):
            return []
        failed = event.error is not None and _ERROR in event.error
        freed = [one for one in event.reentries if one.freed]
        if failed and not freed:
            return [] if event.stack in self._failed else self._unexplained(event)
        if failed:
            self._failed.add(event.stack)
        if event.error is None:
            freed = [one for one in freed if _is_outdated(one)]
        if not freed or (event.error and not failed):
            return []
        return self._explain(event, _cause(freed), failed)

    def _explain(self, event: Backward, found: Reentry, failed: bool) -> list[Finding]:
        place = _diagnose(event, found)
        outcome = f"so {_call(event)} fails"
        if not failed:
            outcome = (
                "without an error, because the graph saved no tensors, but its values are from before the last step"
            )
        return self.finding(
            place.stack or event.stack,
            f"{place.what}, {outcome}",
            place.fix,
            (
                (place.carrier, "the tensor is carried over to the next iteration here"),
                (found.entry, "the new computation uses the freed graph here"),
                (found.used, f"{_earlier(found)} was computed from the freed graph here"),
                (found.built, f"the part that is needed again was computed here ({found.op})"),
                (found.call_stack, "this call freed the graph"),
                (event.stack, "this call needs the graph again"),
                (place.stack[1:], "called from here"),
            ),
            Level.ERROR if failed else Level.WARNING,
        )

    def _unexplained(self, event: Backward) -> list[Finding]:
        return self.finding(
            event.stack,
            f"{expression(event.stack, event.root)} still belongs to a graph that an earlier backward call freed, so {_call(event)} fails",
            "compute that part again before this call, detach() it, or pass retain_graph=True to the first call",
        )


class _Diagnosis(NamedTuple):
    """The line to blame, what happened there, and the fix."""

    stack: Stack
    what: str
    fix: str
    #: the line that carries it over, if another one is to blame
    carrier: Stack = ()


def _is_outdated(one: Reentry) -> bool:
    """A second run through it raises no error, but an optimizer has changed the parameters it was computed from."""
    return not one.view and one.entered_later and bool(one.owners.old & one.owners.stepped)


def _cause(freed: list[Reentry]) -> Reentry:
    """The entry to report: one where something is gone, and rather what comes from the last iteration."""
    return min(freed, key=lambda one: (not one.saved_lost, not one.rebuilt, not one.entry))


def _diagnose(event: Backward, found: Reentry) -> _Diagnosis:
    again = found.call_stack == event.stack
    carried = carrier(found.entry, found.built) if found.rebuilt else None
    if again and not found.rebuilt and _takes_part(event, found):
        return _keep(event, found)
    if _earlier_strays(found):
        return _stray(found.used, found, f"the backward of {_earlier(found)} also runs through {{part}}, and frees it")
    if _this_strays(found):
        root = expression(event.stack, event.root)
        return _stray(
            found.entry,
            found,
            f"the backward of {root} also runs through {{part}} and which the backward of {_earlier(found)} freed",
        )
    if not again and found.entered_later and _is_part(found):
        return _keep(event, found)
    if again and not carried and not (found.rebuilt and found.own_leaves):
        return _built_once(event, found)
    if not found.entered_later or event.stack[:1] == found.entry[:1] or _is_first_of_two(event, found):
        return _keep(event, found)
    return _carried(event, found, carried)


def _is_first_of_two(event: Backward, found: Reentry) -> bool:
    """A gradient was computed on the path to the loss."""
    return (found.call_request, event.request) == ("grad", "backward")


def _takes_part(event: Backward, found: Reentry) -> bool:
    """The same call asks row after row, or input after input, of one graph: nothing has to be computed again."""
    if not found.entry:
        return event.request == "grad" or found.op in _PARTS
    return _is_part(found) or not found.entered_later or (event.request == "grad" and not found.own_leaves)


def _is_part(found: Reentry) -> bool:
    """What was computed since takes one part of the old tensor, and no more than its sum or mean."""
    return found.through <= _PLAIN and not found.through.isdisjoint(_PARTS)


def _earlier_strays(found: Reentry) -> bool:
    """The earlier call ran through parameters that another optimizer is to train: the one of this call."""
    owners = found.owners
    trained = bool(owners.old and owners.stepped) and not owners.old & owners.stepped
    return trained and bool(found.used) and (found.entered_later or not owners.new - owners.old)


def _this_strays(found: Reentry) -> bool:
    """This call runs through parameters that the earlier call is there to train, on the way to those of its own."""
    owners = found.owners
    of_others = bool(owners.new) and not owners.new & owners.old
    trained = owners.old <= owners.stepped if owners.stepped else not owners.earlier
    return bool(found.entry) and bool(owners.old) and of_others and trained


def _stray(stack: Stack, found: Reentry, what: str) -> _Diagnosis:
    line = within(stack, shared_depth(stack, found.built))
    name = next(iter(_names(line, found)), "")
    part = f"the graph of `{name}`" if name else "a part of the graph"
    cut = f"use `{name}.detach()` in this line" if name else "detach() the tensor that this line uses"
    return _Diagnosis(
        line,
        what.format(part=f"{part}, which it should not train"),
        f"{cut}, or compute {f'`{name}`' if name else 'it'} under torch.no_grad()",
    )


def _built_once(event: Backward, found: Reentry) -> _Diagnosis:
    collected = _collected(found)
    line = collected or maker(found.built, found.rerun)
    # `for part in output.chunk(4)`, `[grad(part, w) for part in output]`
    if line and (syntax.opens_loop(line[0]) or line[0].place == event.stack[0].place):
        return _keep(event, found)
    made = " and ".join(f"`{name}`" for name in questions.assigned(line[0])) if line else ""
    what = "the collected tensors" if collected else made or "this part of the graph"
    return _Diagnosis(
        line,
        f"{what} {'are' if collected or ' and ' in what else 'is'} computed once, and the first backward call frees the graph",
        f"compute {made or 'this part'} again before each backward call, inside the loop or closure; or, where no gradient "
        f"should flow through {'it' if ' and ' not in made else 'them'}, detach() {'it' if ' and ' not in made else 'them'}",
    )


def _collected(found: Reentry) -> Stack:
    """The frames from the line that puts tensors into the list of which the part was made that is needed again."""
    for depth, site in enumerate(found.gathered if found.built else ()):
        line = carrying.collected_at(site, found.built[0])
        if line:
            return (at_line(site, line), *found.gathered[depth + 1 :])
    return ()


def _keep(event: Backward, found: Reentry) -> _Diagnosis:
    again = found.call_stack == event.stack
    when = "it needs again in the next iteration" if again else "a later call needs again"
    return _Diagnosis(found.call_stack, f"this call frees a graph that {when}", _keeping(event, found, again))


def _keeping(event: Backward, found: Reentry, again: bool) -> str:
    if _is_first_of_two(event, found):
        return "pass create_graph=True to this call if the loss should train through this gradient, otherwise retain_graph=True"
    if event.request == "grad" and again and not found.entry:
        return "compute all gradients in one call: torch.autograd.grad accepts several inputs; or pass retain_graph=True to this call"
    if event.request == "grad" or again:
        return "pass retain_graph=True to this call, or, if these are losses, add them up and call backward once"
    simple = found.call_root.isidentifier() and event.root.isidentifier() and found.call_root != event.root
    both = f", `({found.call_root} + {event.root}).backward()`" if simple else ""
    return f"call backward once{both}; or pass retain_graph=True to this first call"


def _carried(event: Backward, found: Reentry, carried: Carried | None) -> _Diagnosis:
    stack = carried.stack if carried else within(found.entry, shared_depth(found.entry, event.stack))
    names = carried.names if carried else _names(stack, found)
    graph = f"the graph of {_earlier(found)}, which an earlier backward call freed"
    kept = names or (questions.assigned(found.built[0]) if found.built else ())
    parts = (carrying.detached_in_part(site, kept) for site in (*stack, *event.stack))
    if parted := next(filter(None, parts), None):
        name, site = parted
        fix = f"detach each part: `{name} = tuple(part.detach() for part in {name})`; or, {_TOGETHER}"
        what = f"`{name}` still belongs to {graph}: only a part of it is detached"
        return _Diagnosis((site,), what, fix, carrier=stack)
    if not names:
        fix = f"detach() the tensor that is carried over; or, {_TOGETHER}"
        return _Diagnosis(stack, f"a tensor that this line uses still belongs to {graph}", fix)
    listed = " and ".join(f"`{name}`" for name in names)
    if names == (event.root,):
        fix = f"call backward on the new loss only, and sum numbers: `{event.root} += loss.item()`"
        return _Diagnosis(
            stack, f"{listed} still contains the losses of earlier iterations, whose graphs were freed", fix
        )
    if carrying.grows(stack[0], names[0]):
        fix = f"empty {listed} after each backward call, or put only detached tensors into {listed}: `.detach()`"
        return _Diagnosis(stack, f"{listed} still holds tensors of {graph}", fix)
    belong = "belongs" if len(names) == 1 else "belong"
    nodes = {one.node for one in event.reentries if (one.built, one.entry) == (found.built, found.entry)}
    several = len(nodes) > 1 and carried is not None and "[" not in names[0]
    fix = f"{_detaching(stack, names, several)}; or, {_TOGETHER}"
    return _Diagnosis(stack, f"{listed} still {belong} to {graph}", fix)


_TOGETHER = "to train through both, add the losses up and call backward once"


def _detaching(stack: Stack, names: tuple[str, ...], several: bool) -> str:
    """What to type so that these are carried over without their graph. `several` tensors may go by one name."""
    stored = carrying.plain_value(stack[0])
    if stored:
        return f"store the value without its graph: `{names[0]} = {stored}.detach()`"
    carried = Carried(stack, names)
    if carried.is_unnamed:
        return f"hand it on without its graph: {carried.detached()}"
    them = " and ".join(f"`{name}`" for name in names)
    if several and len(names) == 1:
        return f"detach {them} before the next use: `{names[0]} = tuple(part.detach() for part in {names[0]})`"
    return f"detach {them} before the next use: {carried.detached()}"


def _names(line: Stack, found: Reentry) -> tuple[str, ...]:
    """What the user calls the tensors that were built earlier and enter here; empty if unknown."""
    if not line:
        return ()
    read = questions.reads(line[0]) | carrying.state_reads(line[0])
    mixed = tuple(text for text in questions.assigned(line[0]) if text.partition("[")[0] in read)
    last = sorted(name for name in carrying.round_trips(line[0]) if not _is_cut(line[0], name)) if found.rebuilt else []
    made = [name for site in found.built for name in questions.assigned(site) if name in read]
    grown = sorted(name for name in read if carrying.grows(line[0], name))
    return mixed or tuple([*last, *made, *grown][:1])


def _is_cut(site: Site, name: str) -> bool:
    """Whether the loop hands the variable to its next iteration without a graph."""
    place = carrying.handed_over(site, name)
    return place is not None and place[1]


def _earlier(found: Reentry) -> str:
    return expression(found.call_stack, found.call_root)


def _call(event: Backward) -> str:
    if event.request == "grad":
        return f"autograd.grad of `{event.root}`" if event.root else "this autograd.grad call"
    return f"`{event.root}.backward()`" if event.root.replace(".", "").isidentifier() else "the backward call"
