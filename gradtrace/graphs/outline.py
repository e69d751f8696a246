"""A graph as rooms within rooms, for pictures in which the reader opens and closes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gradtrace.graphs import memory
from gradtrace.graphs.boxes import Closed, box, shut
from gradtrace.graphs.fold import ALL
from gradtrace.graphs.parts import Part, Parts
from gradtrace.model.graph import Graph, Kind, Node


@dataclass(frozen=True, slots=True)
class Room:
    """Operations that can be drawn as one. `number` counts from 1; `inside` is the room around it, 0 for none.

    Equal turns of a repetition have a room, in which there are the last of them and a room with those before.
    """

    number: int
    inside: int
    closed: Closed
    open: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The rooms of a graph, outer ones first, each as a node that stands for all in it; and the room of each node, 0
    for none. Leaves and constants are where all their users are."""

    rooms: Sequence[Room]
    boxes: Sequence[Node]
    room_of: Mapping[int, int]


def outline(graph: Graph, depth: int = ALL, open: Collection[str] = ()) -> Outline:
    """All rooms of a graph; `depth` levels of them are open, and so are the modules named in `open`."""
    rooms, room_of = _rooms(Parts(graph, open), depth, open)
    inside = {room.number: room.inside for room in rooms}
    users: dict[int, list[int]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, []).append(edge.user)
    for node in reversed(graph.nodes):  # a constant behind a cut after the cut
        if node.kind is not Kind.OP:
            found = [room_of.get(user, 0) for user in users.get(node.id, ())] or [0]
            room_of[node.id] = _common(found, inside)
    ends: dict[int, dict[int, None]] = {room.number: {} for room in rooms}
    for edge in graph.edges:
        number = room_of[edge.user] if graph.by_id[edge.source].kind in (Kind.LEAF, Kind.CONSTANT) else 0
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
        for one in rooms
    ]
    return Outline(rooms, boxes, room_of)


def _rooms(parts: Parts, depth: int, open: Collection[str]) -> tuple[list[Room], dict[int, int]]:
    rooms: list[Room] = []
    room_of: dict[int, int] = {}

    def enter(
        turns: Sequence[Sequence[Part | int]], inside: int, around: str, opened: bool, beside: bool = False
    ) -> int:
        """The number of a new room, or of the one around where it would hold no more than a node."""
        shown = frozenset((0,)) if beside else frozenset[int]()
        for closed in shut(parts, turns, around, shown):
            rooms.append(Room(len(rooms) + 1, inside, closed, opened))
            return len(rooms)
        return inside

    waiting: list[tuple[Part, int, int, str]] = [(parts.root, 0, ALL if depth >= parts.levels else depth, "")]
    while waiting:
        part, room, left, around = waiting.pop()
        around = part.call.path if part.call is not None else around
        left = ALL if part.call is not None and part.call.path in open else left
        for run in parts.runs(part):
            places = [(run.turns[-1], room, left)]
            if len(run.turns) > 1:
                whole = enter(run.turns, room, around, left > 0)
                more = enter(run.turns[:-1], whole, around, False, beside=True)
                places = [(run.turns[-1], whole, left), *((turn, more, 0) for turn in run.turns[:-1])]
            for one, at, level in ((one, at, level) for turn, at, level in places for one in turn):
                if isinstance(one, int):
                    room_of[parts.operations[one].id] = at
                    continue
                opened = id(one) in parts.apart or (level > 0 and (level > ALL // 2 or not parts.is_layer(one)))
                waiting.append((one, enter([[one]], at, around, opened), max(level - 1, 0), around))
    return rooms, room_of


def _common(numbers: Sequence[int], inside: Mapping[int, int]) -> int:
    """The innermost room that holds all of these."""
    ways = []
    for number in numbers:
        way = []
        while number:
            way.append(number)
            number = inside[number]
        ways.append(way[::-1])
    same = 0
    while all(len(way) > same and way[same] == ways[0][same] for way in ways):
        same += 1
    return ways[0][same - 1] if same else 0
