"""A graph as blocks within blocks, for pictures in which the reader opens and closes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gradtrace.graphs import memory
from gradtrace.graphs.boxes import Closed, box, shut
from gradtrace.graphs.fold import ALL
from gradtrace.graphs.parts import Part, Parts, Run
from gradtrace.model.graph import Graph, Kind, Node


@dataclass(frozen=True, slots=True)
class Block:
    """Operations that can be drawn as one. `number` counts from 1; `inside` is the block around it, 0 for none.

    Equal iterations of a repetition have a block, in which there are the last of them and a block with those before.
    """

    number: int
    inside: int
    closed: Closed
    open: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The blocks of a graph, outer ones first, each as a node that stands for all in it; and the block of each node, 0
    for none. Leaves and constants are where all their users are."""

    blocks: Sequence[Block]
    boxes: Sequence[Node]
    block_of: Mapping[int, int]


def outline(graph: Graph, depth: int = ALL, open: Collection[str] = ()) -> Outline:
    """All blocks of a graph; `depth` levels of them are open, and so are the modules named in `open`."""
    found = _Blocks(Parts(graph, open), depth, open)
    inside = {block.number: block.inside for block in found.blocks}
    _place_ends(graph, found.block_of, inside)
    ends = _ends(graph, found.block_of, inside)
    owned = memory.owned(graph)
    boxes = []
    for one in found.blocks:
        members = one.closed.members
        saved = sum(owned.get(member, 0) for member in members)
        boxes.append(box(graph, one.closed, one.number, ends[one.number], [(members[-1], 0)], saved))
    return Outline(found.blocks, boxes, found.block_of)


def _place_ends(graph: Graph, block_of: dict[int, int], inside: Mapping[int, int]) -> None:
    """Puts what is no operation where all its users are."""
    users: dict[int, list[int]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, []).append(edge.user)
    for node in reversed(graph.nodes):  # a constant behind a cut after the cut
        if node.kind is not Kind.OP:
            found = [block_of.get(user, 0) for user in users.get(node.id, ())]
            block_of[node.id] = _common(found or [0], inside)


def _ends(graph: Graph, block_of: Mapping[int, int], inside: Mapping[int, int]) -> dict[int, dict[int, None]]:
    """The leaves and constants that are used inside of each block, in order."""
    ends: dict[int, dict[int, None]] = {number: {} for number in inside}
    for edge in graph.edges:
        if graph.by_id[edge.source].kind not in (Kind.LEAF, Kind.CONSTANT):
            continue
        number = block_of[edge.user]
        while number:
            ends[number][edge.source] = None
            number = inside[number]
    return ends


class _Blocks:
    """Makes the blocks of the parts, outer ones first, and says in which block each operation is."""

    def __init__(self, parts: Parts, depth: int, open: Collection[str]) -> None:
        self.blocks: list[Block] = []
        self.block_of: dict[int, int] = {}
        self._parts = parts
        #: parts whose inside is still to be looked at: with the block around, the levels to open, the module around
        self._waiting: list[tuple[Part, int, int, str]] = []
        self._waiting.append((parts.root, 0, ALL if depth >= parts.levels else depth, ""))
        while self._waiting:
            part, block, left, around = self._waiting.pop()
            if part.call is not None:
                around = part.call.path
                left = ALL if around in open else left
            for run in parts.runs(part):
                self._add_run(run, block, left, around)

    def _add_run(self, run: Run, block: int, left: int, around: str) -> None:
        *earlier, last = run.iterations
        if earlier:
            block = self._enter(run.iterations, block, around, left > 0)
            more = self._enter(earlier, block, around, False, beside=True)
        self._add(last, block, left, around)
        for iteration in earlier:
            self._add(iteration, more, 0, around)

    def _add(self, iteration: Sequence[Part | int], block: int, left: int, around: str) -> None:
        for one in iteration:
            if isinstance(one, int):
                self.block_of[self._parts.operations[one].id] = block
            else:
                inner = self._enter([[one]], block, around, self._is_open(one, left))
                self._waiting.append((one, inner, max(left - 1, 0), around))

    def _is_open(self, part: Part, left: int) -> bool:
        """Single layers are opened last."""
        if id(part) in self._parts.apart:
            return True
        return left > ALL // 2 or (left > 0 and not self._parts.is_layer(part))

    def _enter(
        self, iterations: Sequence[Sequence[Part | int]], inside: int, around: str, opened: bool, beside: bool = False
    ) -> int:
        """The number of a new block, or of the one around where it would hold no more than a node."""
        shown = frozenset((0,)) if beside else frozenset[int]()
        for closed in shut(self._parts, iterations, around, shown):
            self.blocks.append(Block(len(self.blocks) + 1, inside, closed, opened))
            return len(self.blocks)
        return inside


def _common(numbers: Sequence[int], inside: Mapping[int, int]) -> int:
    """The innermost block that holds all of these."""
    paths = []
    for number in numbers:
        path = []
        while number:
            path.append(number)
            number = inside[number]
        paths.append(path[::-1])
    same = 0
    while all(len(path) > same and path[same] == paths[0][same] for path in paths):
        same += 1
    return paths[0][same - 1] if same else 0
