"""A graph as blocks within blocks, for pictures in which the reader opens and closes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gradtrace.graphs import memory
from gradtrace.graphs.boxes import Closed, box, shut
from gradtrace.graphs.fold import ALL
from gradtrace.graphs.parts import Part, Parts
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
    blocks, block_of = _blocks(Parts(graph, open), depth, open)
    inside = {block.number: block.inside for block in blocks}
    users: dict[int, list[int]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, []).append(edge.user)
    for node in reversed(graph.nodes):  # a constant behind a cut after the cut
        if node.kind is not Kind.OP:
            found = [block_of.get(user, 0) for user in users.get(node.id, ())] or [0]
            block_of[node.id] = _common(found, inside)
    ends: dict[int, dict[int, None]] = {block.number: {} for block in blocks}
    for edge in graph.edges:
        number = block_of[edge.user] if graph.by_id[edge.source].kind in (Kind.LEAF, Kind.CONSTANT) else 0
        while number:
            ends[number][edge.source] = None
            number = inside[number]
    owned = memory.owned(graph)
    boxes = [
        box(
            graph,
            one.closed,
            one.number,
            ends[one.number],
            [(one.closed.members[-1], 0)],
            sum(owned.get(member, 0) for member in one.closed.members),
        )
        for one in blocks
    ]
    return Outline(blocks, boxes, block_of)


def _blocks(parts: Parts, depth: int, open: Collection[str]) -> tuple[list[Block], dict[int, int]]:
    blocks: list[Block] = []
    block_of: dict[int, int] = {}

    def enter(
        iterations: Sequence[Sequence[Part | int]], inside: int, around: str, opened: bool, beside: bool = False
    ) -> int:
        """The number of a new block, or of the one around where it would hold no more than a node."""
        shown = frozenset((0,)) if beside else frozenset[int]()
        for closed in shut(parts, iterations, around, shown):
            blocks.append(Block(len(blocks) + 1, inside, closed, opened))
            return len(blocks)
        return inside

    waiting: list[tuple[Part, int, int, str]] = [(parts.root, 0, ALL if depth >= parts.levels else depth, "")]
    while waiting:
        part, block, left, around = waiting.pop()
        around = part.call.path if part.call is not None else around
        left = ALL if part.call is not None and part.call.path in open else left
        for run in parts.runs(part):
            places = [(run.iterations[-1], block, left)]
            if len(run.iterations) > 1:
                whole = enter(run.iterations, block, around, left > 0)
                more = enter(run.iterations[:-1], whole, around, False, beside=True)
                places = [
                    (run.iterations[-1], whole, left),
                    *((iteration, more, 0) for iteration in run.iterations[:-1]),
                ]
            for one, at, level in ((one, at, level) for iteration, at, level in places for one in iteration):
                if isinstance(one, int):
                    block_of[parts.operations[one].id] = at
                    continue
                opened = id(one) in parts.apart or (level > 0 and (level > ALL // 2 or not parts.is_layer(one)))
                waiting.append((one, enter([[one]], at, around, opened), max(level - 1, 0), around))
    return blocks, block_of


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
