"""Which of the frames of a stack is the place that a reader must look at."""

from __future__ import annotations

from gradtrace.model import source
from gradtrace.model.site import Site, Stack


def shared_depth(one: Stack, other: Stack) -> int:
    """How many outer frames of two stacks are the same activation of the same function, as far as stacks can tell:
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
    """The frames of `stack` from the place where a mend belongs, outwards.

    That is the innermost frame that is not inside an `nn.Module` call, except that the outermost `depth` frames are
    always kept: a module's forward is a unit for whoever carries a tensor into it.
    """
    at = max(len(stack) - max(depth, 1), 0)
    while at > 0 and not stack[at - 1].in_module_call:
        at -= 1
    return stack[at:]


def carried_by_attribute(entry: Stack, built: Stack) -> Stack:
    """Where an attribute carries a tensor from one call to the next: the frames from the line that stores it, if that
    line also reads its old value (`self.memory = self.memory + new`), else from the line that reads it; empty if none
    does."""
    for depth, site in enumerate(entry):
        state = source.state_attributes(site.path)
        carried = {text for text in source.reads(site) if "." in text and text.rpartition(".")[2] in state}
        if not carried:
            continue
        for depth_built, maker in enumerate(built):
            if carried & set(source.assigned(maker)) & source.reads(maker):
                return built[depth_built:]
        return entry[depth:]
    return ()


def describe(site: Site) -> str:
    """The statement that stands there, for a message."""
    return source.line_text(site.path, site.line)


def expression(stack: Stack, root: str) -> str:
    """`` `loss.backward()` `` in the user's words, as far as they are known."""
    return f"`{root}`" if root else "this tensor"
