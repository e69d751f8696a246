"""Which of the frames of a stack is the place that a reader must look at."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from gradtrace.model.events import Given, OptimizerStep
from gradtrace.model.site import Site, Stack
from gradtrace.source import carrying, questions, syntax


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
            return (_moved(found[0], kept), *found[1:])
        handed_on = carrying.returned_by(found[0]) and carrying.hands_on(found[1])
        if not handed_on and not found[0].in_module_call:
            break
        found = found[1:]
    return found


class Carried(NamedTuple):
    """The frames from the line that carries a tensor from one iteration to the next, and the user's names for it."""

    stack: Stack
    names: tuple[str, ...]

    def detached(self) -> str:
        """What to type so that they are carried over without their graph."""
        values = ", ".join(f"{name}.detach()" for name in self.names)
        # what is only handed to a call has no name to assign to
        return f"`{values}`" if "(" in self.names[0] else f"`{', '.join(self.names)} = {values}`"


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
                stack = (_moved(made, line), *built[depth_built + 1 :])
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
    moved = (_moved(stack[0], line), *stack[1:])
    return Carried(moved, _in_order(moved[0], open_) or tuple(sorted(open_)))


def _in_order(site: Site, names: Collection[str]) -> tuple[str, ...]:
    """Those of the names that the statement assigns, as it lists them."""
    return tuple(dict.fromkeys(text for text in questions.assigned(site) if text.partition("[")[0] in names))


def _moved(site: Site, line: int) -> Site:
    """The same frame at another of its lines."""
    return site if line == site.line else Site(site.path, line, site.function, in_module_call=site.in_module_call)


def describe(site: Site) -> str:
    """The statement that stands there, for a message."""
    return syntax.line_text(site.path, site.line)


def expression(stack: Stack, root: str) -> str:
    """`` `loss` ``, the root of a backward call in the user's words, as far as they are known."""
    single = root.startswith("[") and root.endswith("]") and "," not in root
    return f"`{root[1:-1] if single else root}`" if root else "this tensor"


def receiver(step: Stack) -> str:
    """What the user calls the optimizer: `opt` in `opt.step()`, also in `scaler.step(opt)` and `opt.step(closure)`."""
    found = syntax.call(step[0], ("step",)) if step else None
    if found is None or not isinstance(found.func, ast.Attribute):
        return ""
    given = found.args[0] if found.args else None
    scaled = isinstance(given, (ast.Name, ast.Attribute)) and "scaler" in ast.unparse(found.func.value).lower()
    return ast.unparse(given if scaled and given is not None else found.func.value)


def step_call(step: OptimizerStep) -> str:
    """`opt.step()`, the step as the user writes it."""
    return f"{receiver(step.stack) or step.optimizer}.step()"


def grad_read(site: Site) -> str:
    """The expression whose .grad the statement at `site` reads, if it is one alone."""
    return attribute_read(site, "grad")


def attribute_read(site: Site, name: str) -> str:
    """The expression of which the statement at `site` reads this attribute, if it is one alone."""
    found = syntax.statement(site.path, site.line, site.column)
    nodes = ast.walk(found) if found is not None else ()
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == name]
    exact = [node for node in reads if (node.lineno, node.col_offset) == (site.line, site.column)]
    texts = {ast.unparse(node.value) for node in exact or reads}
    return texts.pop() if len(texts) == 1 else ""


def names_of(names: tuple[str, ...], count: int) -> str:
    """A few names of many, in words: `` `a` ``, `` `a` and `b` `` or `` `a`, `b` and 2 more ``."""
    shown = [f"`{name}`" for name in names[:2] if name]
    if not shown:
        return "a parameter" if count == 1 else f"{count} parameters"
    if count > len(shown):
        return f"{', '.join(shown)} and {count - len(shown)} more"
    return " and ".join(shown)


def them(count: int) -> str:
    """The pronoun for so many named before."""
    return "it" if count == 1 else "them"


def these(names: tuple[str, ...], count: int) -> str:
    """What a sentence calls them that comes after their names."""
    return names_of(names, count) if count == 1 else "these parameters"


def leaves_of(one: Given) -> str:
    """The leaves that a call gave gradients to."""
    return names_of(one.leaves, one.count)
