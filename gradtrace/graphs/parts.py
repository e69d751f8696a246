"""How a graph divides into parts: calls of modules within calls of modules; outside of them functions and lines.

A part is an unbroken stretch of the order in which operations were made. So no path leads out of a part and back in, and
whatever parts are drawn as one, the graph stays free of circles.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

from gradtrace.model.graph import Call, Graph, Kind, Node, SavedState

#: ("call", number), ("function", path, name) or ("line", path, name, number)
Key: TypeAlias = tuple[object, ...]
#: how many iterations make a repetition that is worth showing: of modules, of single operations
_FEWEST_BLOCKS, _FEWEST_NODES = 3, 6
#: the longest iteration that is searched for
_LONGEST_TURN = 64


@dataclass(eq=False, slots=True)
class Part:
    """A stretch of operations, from rank `start` up to `end`, and what it consists of: parts and ranks."""

    key: Key
    start: int
    end: int = 0
    inner: list[Part | int] = field(default_factory=list)
    call: Call | None = None
    #: equal for parts of the same structure
    likeness: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Turns of the same structure, one after the other: parts and ranks. What comes once has one iteration."""

    iterations: tuple[tuple[Part | int, ...], ...]


class Parts:
    """The parts of one graph, as a tree."""

    def __init__(self, graph: Graph, open: Collection[str] = ()) -> None:
        self.graph = graph
        #: identities of the parts that are to be opened in any case
        self.apart: set[int] = set()
        self.operations = _in_order(graph)
        self._calls = graph.call
        self._outer = {call.inside for call in graph.calls}
        self._numbers: dict[object, int] = {}
        self.root = self._tree()
        self._ends = _ends(graph)
        self._likeness = [self._number(self._alike(node)) for node in self.operations]
        self._freed = [rank for rank, node in enumerate(self.operations) if is_freed(node)]
        self._modified = [rank for rank, node in enumerate(self.operations) if is_modified(node)]
        self._set_apart(open)
        self._compare()

    def _tree(self) -> Part:
        root = Part(("root",), 0, len(self.operations))
        opened = [root]
        place = None
        for rank, node in enumerate(self.operations):
            if (node.call, node.stack) == place:
                opened[-1].inner.append(rank)
                continue
            place = node.call, node.stack
            keys = self._keys(node)
            same = 0
            while same < min(len(keys), len(opened) - 1) and opened[same + 1].key == keys[same]:
                same += 1
            _close(opened, same, rank)
            for key in keys[same:]:
                call = self._calls[key[1]] if key[0] == "call" else None  # type: ignore[index]
                opened.append(Part(key, rank, call=call))
            opened[-1].inner.append(rank)
        _close(opened, 0, len(self.operations))
        return root

    def _keys(self, node: Node) -> list[Key]:
        """From the outermost part to the innermost."""
        keys: list[Key] = []
        number = node.call
        while number:
            keys.insert(0, ("call", number))
            number = self._calls[number].inside
        if not node.stack:
            return keys
        site = node.stack[0]
        if not keys and site.function != "<module>":
            keys.append(("function", site.path, site.function))
        return [*keys, ("line", site.path, site.function, site.line)]

    def is_layer(self, one: Part | int) -> bool:
        """Whether it is the call of a module that calls no other one: `Linear`, `LayerNorm`."""
        return isinstance(one, Part) and one.call is not None and one.call.number not in self._outer

    def reads_leaf(self, operation: int) -> bool:
        """Whether the operation reads a leaf."""
        return any(end.kind is Kind.LEAF for end in self._ends.get(operation, ()))

    @property
    def levels(self) -> int:
        """How many levels of parts lie in one another."""
        level, deepest = [self.root], -1
        while level:
            level = [one for part in level for one in part.inner if isinstance(one, Part)]
            deepest += 1
        return deepest

    # --- what must be open -------------------------------------------------------------------------------------------

    def _set_apart(self, open: Collection[str]) -> None:
        """What holds a module to be opened, a tensor that was written to, or freed nodes beside others."""
        for part in self._innermost_first():
            inner = any(id(one) in self.apart for one in part.inner)
            if inner or (part.call is not None and part.call.path in open) or self._is_mixed(part):
                self.apart.add(id(part))

    def _is_mixed(self, part: Part) -> bool:
        if _within(self._modified, part):
            return True
        freed = _within(self._freed, part)
        return 0 < freed < sum(bool(node.saved) for node in self.operations[part.start : part.end]) if freed else False

    # --- likeness ----------------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        """Gives equal numbers to parts that differ in nothing but names and values."""
        parts = self._innermost_first()
        for part in parts:
            inner = tuple(
                [
                    self._likeness[one] if isinstance(one, int) else (one.likeness, _below(one.call, part.call))
                    for one in part.inner
                ]
            )
            kind = part.call.kind if part.call is not None else part.key
            alone = id(part) if id(part) in self.apart else 0
            part.likeness = self._number((kind, inner, alone))
        times = Counter(part.likeness for part in parts)
        twins = [part for part in parts if times[part.likeness] > 1]
        wires = self._wires(twins)
        for part in twins:
            inner = tuple([one.likeness for one in part.inner if isinstance(one, Part)])
            part.likeness = self._number((part.likeness, inner, tuple(sorted(wires.get(id(part), ())))))

    def _alike(self, node: Node) -> object:
        ends = self._ends.get(node.id, ())
        if is_modified(node) or any(end.kind is Kind.CUT for end in ends):
            return node.id
        leaves = tuple([(end.kind, end.outputs) for end in ends if end.kind in (Kind.LEAF, Kind.CONSTANT)])
        saved = tuple([(one.name, one.tensor, one.state) for one in node.saved])
        at = node.stack[0].place if node.stack else None
        return node.op, node.outputs, saved, node.tags, at, leaves

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers) + 1)

    def _wires(self, parts: Sequence[Part]) -> Mapping[int, list[tuple[int, ...]]]:
        """The edges between operations, by the identity of the innermost of these parts that holds both ends."""
        around: dict[int, list[Part]] = {}
        for one in parts:
            for rank in range(one.start, one.end):
                around.setdefault(rank, []).append(one)
        wires: dict[int, list[tuple[int, ...]]] = {}
        ranks = {node.id: rank for rank, node in enumerate(self.operations)} if parts else {}
        for edge in self.graph.edges if parts else ():
            user, read = ranks.get(edge.user), ranks.get(edge.source)
            if user in around and read is not None:
                part = next((one for one in around[user] if one.start <= read < one.end), None)
                if part is not None:
                    wire = (user - part.start, read - part.start, edge.input, edge.output)
                    wires.setdefault(id(part), []).append(wire)
        return wires

    def _innermost_first(self) -> Sequence[Part]:
        found = [self.root]
        for part in found:
            found += [one for one in part.inner if isinstance(one, Part)]
        return found[::-1]

    # --- repetition --------------------------------------------------------------------------------------------------

    def runs(self, part: Part) -> Iterator[Run]:
        """What a part consists of, repetitions found."""
        inner = part.inner
        likeness = [self._likeness[one] if isinstance(one, int) else (one.likeness, _family(one)) for one in inner]
        at = 0
        while at < len(inner):
            period, iterations, rest = _repetition(likeness, at, inner)
            yield from (Run(((one,),)) for one in inner[at : at + rest])  # a loop ends with a whole iteration
            starts = range(at + rest, at + rest + iterations * period, period)
            yield Run(tuple(tuple(inner[start : start + period]) for start in starts))
            at += rest + period * iterations

    def members(self, iterations: Iterable[Iterable[Part | int]]) -> tuple[int, ...]:
        """The ids of the operations in these iterations."""
        found: list[int] = []
        for one in (one for iteration in iterations for one in iteration):
            found += [one] if isinstance(one, int) else range(one.start, one.end)
        return tuple([self.operations[rank].id for rank in found])


def is_freed(node: Node) -> bool:
    return "freed" in node.tags or SavedState.FREED in [one.state for one in node.saved]


def is_modified(node: Node) -> bool:
    return "modified in place" in node.tags or SavedState.MODIFIED in [one.state for one in node.saved]


def _in_order(graph: Graph) -> list[Node]:
    operations = [node for node in graph.nodes if node.kind is Kind.OP]
    if all(node.made for node in operations):
        operations.sort(key=attrgetter("made"))
        return operations
    return [node for number in reversed(graph.order) if (node := graph.by_id[number]).kind is Kind.OP]


def _ends(graph: Graph) -> Mapping[int, Sequence[Node]]:
    """The leaves, constants and cuts that each operation reads, in input order."""
    ends = {node.id: node for node in graph.nodes if node.kind is not Kind.OP}
    found: dict[int, list[Node]] = {}
    for edge in sorted((edge for edge in graph.edges if edge.source in ends), key=attrgetter("user", "input")):
        found.setdefault(edge.user, []).append(ends[edge.source])
    return found


def _within(ranks: Sequence[int], part: Part) -> int:
    """How many of these ranks, which ascend, lie in a part."""
    return bisect_left(ranks, part.end) - bisect_left(ranks, part.start)


def _close(opened: list[Part], depth: int, end: int) -> None:
    """Leaves all but the outermost `depth` parts; a function or line that only wraps one thing gives way."""
    while len(opened) > depth + 1:
        part = opened.pop()
        part.end = end
        lone = part.inner[0] if len(part.inner) == 1 else None
        if isinstance(lone, Part) and lone.call is None:
            part.inner = lone.inner
        opened[-1].inner.append(part if lone is None or part.call is not None else lone)


def _below(call: Call | None, around: Call | None) -> str:
    """The path of a call, seen from the call around it."""
    if call is None:
        return ""
    return call.path.removeprefix(f"{around.path}." if around is not None and around.path else "")


def _family(part: Part) -> str:
    """`layers.#` for `layers.3`: modules of a list may be iterations of one repetition, `query` and `key` are two things."""
    return re.sub(r"\b\d+\b", "#", part.call.path) if part.call is not None else ""


def _repetition(likeness: Sequence[object], at: int, inner: Sequence[Part | int]) -> tuple[int, int, int]:
    """The period and number of iterations of the repetition that begins at a place, and how much of another iteration is left
    over; (1, 1, 0) where there is none."""
    for period in range(1, min(_LONGEST_TURN, (len(likeness) - at) // 2) + 1):
        end = at + period
        while end < len(likeness) and likeness[end] == likeness[end - period]:
            end += 1
        iterations, rest = divmod(end - at, period)
        blocks = any(isinstance(one, Part) for one in inner[at : at + period])
        if iterations >= (_FEWEST_BLOCKS if blocks else _FEWEST_NODES):
            return period, iterations, rest
    return 1, 1, 0
