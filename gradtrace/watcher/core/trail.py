"""Which line made which node: autograd numbers its nodes in order of creation, so ranges of numbers belong to calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice

from gradtrace.model.site import Stack

#: node ranges remembered; older graphs lose their lines, the memory of a long run stays flat
_KEEP = 50_000


class Trail:
    """Ranges of sequence numbers and the stack of the call that made their nodes (one thread's)."""

    def __init__(self) -> None:
        self.end = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._stacks: list[Stack] = []

    def add(self, start: int, end: int, stack: Stack) -> None:
        """Nodes `start` to `end - 1` were made at `stack`."""
        self.end = end
        if self._stacks and self._stacks[-1] is stack and self._ends[-1] == start:
            self._ends[-1] = end
            return
        self._starts.append(start)
        self._ends.append(end)
        self._stacks.append(stack)
        if len(self._starts) >= 2 * _KEEP:
            del self._starts[:_KEEP], self._ends[:_KEEP], self._stacks[:_KEEP]

    def find(self, number: int) -> Stack:
        """The stack that made node `number`; empty where that is not known."""
        at = bisect_right(self._starts, number) - 1
        return self._stacks[at] if at >= 0 and number < self._ends[at] else ()

    def ran_since(self, stack: Stack, number: int) -> int:
        """How many frames of `stack`, from the outermost, have made nodes again, from number `number` on."""
        since = islice(self._stacks, bisect_left(self._starts, number), None)
        return max((_shared(stack, other) for other in {id(one): one for one in since}.values()), default=0)


def _shared(one: Stack, other: Stack) -> int:
    pairs = enumerate(zip(reversed(one), reversed(other), strict=False))
    return next((depth for depth, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))
