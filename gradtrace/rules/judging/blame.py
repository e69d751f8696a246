"""Which line to report: of the frames of a stack, the one that a reader must look at, and where the fix goes.

Everything here takes plain stacks and asks the user's source; a line that is not known is an empty stack.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from gradtrace.model.events import Cut
from gradtrace.model.site import Held, Site, Stack
from gradtrace.source import carrying, questions
from gradtrace.source.construction import construction


def at_line(site: Site, line: int) -> Site:
    """The same frame at another of its lines, of which no column is known."""
    return site if line == site.line else Site(site.path, line, site.function, in_module_call=site.in_module_call)


def of_file(path: str, line: int) -> Stack:
    """A line that the source was searched for, in no frame of the run."""
    return (Site(path, line, ""),)


def shared_depth(one: Stack, other: Stack) -> int:
    """How many outer frames of two stacks are the same activation of the same function, as far as stacks show:
    all callers equal, the last shared frame on whichever line."""
    depth = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if (mine.path, mine.function) != (theirs.path, theirs.function):
            break
        depth += 1
        if mine != theirs:
            break
    return depth


def shared_frames(stack: Stack, other: Stack) -> Stack:
    """The frames of `stack` from the innermost one on that `other` was in as well; empty where there is none."""
    depth = shared_depth(stack, other)
    return stack[-depth:] if depth else ()


def in_function_of(stack: Stack, other: Stack) -> Stack:
    """The frames of `stack` from the innermost function on that `other` was in as well, in this call of it or another;
    empty where there is none."""
    functions = {(site.path, site.function) for site in other}
    for depth, site in enumerate(stack):
        if (site.path, site.function) in functions:
            return stack[depth:]
    return ()


def within(stack: Stack, depth: int) -> Stack:
    """The frames of `stack` from the place where a fix belongs, outwards.

    That is the innermost frame that is not inside an `nn.Module` call, except that the outermost `depth` frames are
    always kept: a module's forward is a unit for whoever carries a tensor into it.
    """
    at = max(len(stack) - max(depth, 1), 0)
    while at > 0 and not stack[at - 1].in_module_call:
        at -= 1
    return stack[at:]


def maker(built: Stack, rerun: int) -> Stack:
    """The frames from the line that must run again for a tensor to be made again; the outermost `rerun` frames do.

    A helper that returns the tensor, or a module's forward, is as good as its call; a line that stores it away is the
    place itself.
    """
    found = built
    while len(found) > rerun + 1:
        kept = carrying.cached_at(found[0])
        if kept is not None:
            return (at_line(found[0], kept), *found[1:])
        handed_on = carrying.returned_by(found[0]) and carrying.hands_on(found[1])
        if not handed_on and not found[0].in_module_call:
            break
        found = found[1:]
    return found


class Carried(NamedTuple):
    """The frames from the line that carries a tensor from one iteration to the next, and the user's names for it."""

    stack: Stack
    names: tuple[str, ...]

    @property
    def is_unnamed(self) -> bool:
        """It is only handed to a call: there is no name to assign to."""
        return "(" in self.names[0]

    def detached(self) -> str:
        """What to type so that they are carried over without their graph."""
        values = ", ".join(f"{name}.detach()" for name in self.names)
        return f"`{values}`" if self.is_unnamed else f"`{', '.join(self.names)} = {values}`"


def carrier(entry: Stack, built: Stack) -> Carried | None:
    """How what was `built` in the last iteration enters this one at `entry`; None where no variable is seen to carry it."""
    return _by_attribute(entry, built) or _by_loop(entry, built) or _by_call(entry, built)


def _by_attribute(entry: Stack, built: Stack) -> Carried | None:
    """The line that stores the attribute (`self.hidden = hidden`), else the line that reads it."""
    for depth, site in enumerate(entry):
        carried = carrying.state_reads(site)
        # the object that stores it calls itself `self`
        stored = carried | {f"self.{text.rpartition('.')[2]}" for text in carried}
        for depth_built, made in enumerate(built if carried else ()):
            line = carrying.stored(made, stored)
            if line is not None:
                stack = (at_line(made, line), *built[depth_built + 1 :])
                return Carried(stack, _in_order(stack[0], stored))
        if carried & questions.reads(site):
            return Carried(entry[depth:], tuple(sorted(carried & questions.reads(site))))
    return None


def _by_loop(entry: Stack, built: Stack) -> Carried | None:
    """The line of a loop that reads what it or a later line assigned in the last iteration (`out, h = cell(x, h)`), or the
    line that mixes the old value of a variable into the new one (`mean = 0.9 * mean + 0.1 * x`)."""
    shared = shared_depth(entry, built)
    for depth in range(1, shared + 1):
        names = carrying.round_trips(entry[-depth]) if entry[-depth] == built[-depth] else frozenset()
        if names:
            return _handed_over(entry[-depth:], names)
    if not shared:
        return None
    reader, mixer = entry[-shared], built[-shared:]
    names = questions.bound(mixer[0]) & questions.reads(mixer[0]) & questions.reads(reader)
    return Carried(mixer, _in_order(mixer[0], names) or tuple(sorted(names))) if names else None


def _by_call(entry: Stack, built: Stack) -> Carried | None:
    """The line that hands what it makes to a call and no further, `self.memory.put(key, self.cell(x, h))`, in the function
    that reads later what was put away."""
    shared = shared_depth(entry, built)
    if not shared or entry[-shared] == built[-shared]:
        return None
    given, receiver = questions.handed_to_call(built[-shared])
    # what the new computation names itself is known by that name
    known = bool(({receiver, receiver.partition(".")[0]} - {"self"}) & questions.reads(entry[-shared]))
    return Carried(built[-shared:], (given,)) if given and not known else None


def _handed_over(stack: Stack, names: Collection[str]) -> Carried:
    """The line that hands values to the next iteration, where that is another one than the reader's; those without a graph
    are left out."""
    later = {name: carrying.handed_over(stack[0], name) for name in names}
    open_ = {name: place for name, place in later.items() if not (place and place[1])} or later
    lines = {place[0] if place else stack[0].line for place in open_.values()}
    line = lines.pop() if len(lines) == 1 else stack[0].line
    moved = (at_line(stack[0], line), *stack[1:])
    return Carried(moved, _in_order(moved[0], open_) or tuple(sorted(open_)))


def _in_order(site: Site, names: Collection[str]) -> tuple[str, ...]:
    """Those of the names that the statement assigns, as it lists them."""
    return tuple(dict.fromkeys(text for text in questions.assigned(site) if text.partition("[")[0] in names))


def cut_place(cut: Cut) -> Stack:
    """The line that cut a path; where gradients were off, the one that turned them off."""
    if cut.why == "frozen":
        return switched_by(cut.stack)
    if cut.why != "no_grad":
        return cut.stack
    return turned_off(cut.stack) or cut.switched or cut.stack


def turned_off(stack: Stack) -> Stack:
    """The frames from the `with torch.no_grad():` or decorator that turned gradients off; empty where none did."""
    for depth, site in enumerate(stack):
        line = questions.gradients_off(site.path, site.line)
        if line is not None:
            return (at_line(site, line), *stack[depth + 1 :])
    return ()


def switched_by(stack: Stack) -> Stack:
    """The frames from the line that decides what `requires_grad` becomes: a function that is passed the value,
    `freeze(net, True)`, only does what its caller says."""
    value = questions.requires_grad_set(stack[0]) if stack else ""
    for depth, (callee, caller) in enumerate(pairwise(stack)):
        value = questions.given_for(value, callee, caller)
        if not value:
            return stack[depth:]
    return stack[-1:]


def run_without_gradients(stack: Stack) -> Stack:
    """The frames from the line that stands in such a `with` or function; the whole stack where none does."""
    for depth, site in enumerate(stack):
        if questions.gradients_off(site.path, site.line) is not None:
            return stack[depth:]
    return stack


def constructed(module: Held | None) -> Stack:
    """The line that made a module, if the source says so without doubt."""
    site = construction(module) if module is not None else None
    return (site,) if site is not None else ()


def outside_constructors(stack: Stack) -> Stack:
    """The frames from the innermost line that is in no constructor: the one that makes the whole model."""
    at = 0
    while at < len(stack) - 1 and stack[at].function.rpartition(".")[2] == "__init__":
        at += 1
    return stack[at:]


def assignment(stack: Stack, name: str) -> Stack:
    """The line that gives a variable its value, where it is the only one of the innermost function."""
    line = questions.assigned_at(*stack[0].place, name) if stack and name.isidentifier() else None
    return (at_line(stack[0], line), *stack[1:]) if line else ()


class Returned(NamedTuple):
    """The only `return` of a function, and the expressions that it returns."""

    stack: Stack
    values: tuple[str, ...]


def returned(definition: Stack) -> Returned:
    """What the function returns that is defined at a line; the line itself where there is no single `return`."""
    found = questions.returned(*definition[0].place) if definition else None
    if found is None:
        return Returned(definition, ())
    return Returned((at_line(definition[0], found[0]),), found[1])


def uncalled(stack: Stack, method: str) -> Stack:
    """The line that names a method and forgets its parentheses, in the file of the innermost frame."""
    line = questions.uncalled(stack[0].path, method) if stack else None
    return (at_line(stack[0], line),) if line else ()
