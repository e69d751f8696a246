"""What pictures need of the calls that made nodes, and the nodes themselves do not keep."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from gradtrace.model.events import Cut
from gradtrace.model.graph import TensorFact

#: calls remembered
_KEEP = 200_000


class Input(NamedTuple):
    """An input that needs no gradient."""

    name: str | None
    tensor: TensorFact
    cuts: tuple[Cut, ...]
    #: identity, for a frozen parameter whose name is looked up later; 0 for what may be gone by then
    parameter: int


class CallNote(NamedTuple):
    """What one call knew that its nodes do not."""

    function: str
    #: number of the innermost module call it ran in
    call: int
    inputs: tuple[Input, ...]


class Notes:
    """A note of each call, by the numbers of the nodes that it made: one thread's, so that they ascend."""

    def __init__(self) -> None:
        self._starts, self._ends = array("q"), array("q")
        self.made: list[CallNote] = []

    def add(self, start: int, end: int, made: CallNote) -> None:
        """Nodes `start` to `end - 1` were made by this call."""
        self._starts.append(start)
        self._ends.append(end)
        same = bool(self.made) and self.made[-1] == made  # a loop makes millions
        self.made.append(self.made[-1] if same else made)
        if len(self.made) >= 2 * _KEEP:
            del self._starts[:_KEEP], self._ends[:_KEEP], self.made[:_KEEP]

    def find(self, number: int) -> int:
        """Where in `made` the call is that made a node; -1 where it is not known."""
        at = bisect_right(self._starts, number) - 1
        return at if at >= 0 and number < self._ends[at] else -1

    def is_last(self, at: int, number: int) -> bool:
        """Whether a node is the last that a call made."""
        return number == self._ends[at] - 1

    def around(self, number: int) -> Sequence[CallNote]:
        """The call that made a node; where that is not known, the calls before and after it, if there are both."""
        at = bisect_right(self._starts, number) - 1
        if at < 0:
            return []
        if number < self._ends[at]:
            return [self.made[at]]
        return self.made[at : at + 2] if at + 1 < len(self.made) else []
