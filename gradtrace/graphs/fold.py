"""Folds a graph: parts become boxes, so that a graph of thousands of nodes fits a screen.

A folded graph is a graph again, with nodes of the kind BOX. Of a repetition one iteration is shown, and the others are one
box. Leaves and constants go into the box that uses them; one that different boxes use stays outside. Cuts stay outside,
and so does what was written to in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from gradtrace.errors import no_such
from gradtrace.graphs import memory
from gradtrace.graphs.boxes import Closed, box, shut
from gradtrace.graphs.parts import Part, Parts
from gradtrace.model.graph import Edge, Graph, Kind, Node

#: so many nodes for each row that may be shown, and it is not asked how many rows all of them need
_ALIKE = 50
#: opens everything
ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Folding:
    """How far graphs are opened: to a depth, or as far as fits, and these modules in any case."""

    depth: int | None = None
    open: Collection[str] = ()

    def of(self, graphs: Sequence[Graph], size: Callable[[Graph], int], most: int) -> list[Graph]:
        """The graphs, folded. Raises `UsageError` for a module that none of them has."""
        known = {path for graph in graphs for path in modules(graph)}
        for name in self.open:
            if name not in known:
                raise no_such("module of the graph", name, known)
        if self.depth is None:
            return [fitted(graph, size, most, self.open) for graph in graphs]
        return [folded(graph, self.depth, self.open) for graph in graphs]


def fitted(graph: Graph, size: Callable[[Graph], int], most: int, open: Collection[str] = ()) -> Graph:
    """The graph with as many levels opened as fit: its `size` is at most `most`. What fits whole is not folded.

    `open` names modules that are shown whole in any case.
    """
    small = len(graph.nodes) <= most * _ALIKE
    if small and size(graph) <= most:
        return graph
    parts = Parts(graph, open)
    best = _at(parts, 0, open)
    for depth in range(1, best.levels + small):
        deeper = _at(parts, depth, open)
        if size(deeper) > most:
            break
        best = deeper
    return best


def folded(graph: Graph, depth: int, open: Collection[str] = ()) -> Graph:
    """The graph with `depth` levels opened: 0 shows no more than the outermost modules, functions and lines."""
    return _at(Parts(graph, open), depth, open)


def modules(graph: Graph) -> list[str]:
    """The paths of the modules that can be opened."""
    return list(dict.fromkeys(call.path for call in graph.calls if call.path))


def _at(parts: Parts, depth: int, open: Collection[str]) -> Graph:
    graph = _Drawn(parts.graph, list(_closed(parts, depth, open))).graph()
    return replace(graph, whole=parts.graph, opened=depth, levels=parts.levels) if graph is not parts.graph else graph


# --- what is closed --------------------------------------------------------------------------------------------------


def _closed(parts: Parts, depth: int, open: Collection[str]) -> Iterator[Closed]:
    """What stays closed where `depth` levels are opened: single layers too, until everything is open."""
    depth = ALL if depth >= parts.levels else depth
    waiting = [(parts.root, depth, "")]
    while waiting:
        part, left, around = waiting.pop()
        if part.call is not None:
            around = part.call.path
            left = ALL if around in open else left
        for run in parts.runs(part):
            *earlier, last = run.iterations
            if left <= 0 and not any(id(one) in parts.apart for one in last):
                yield from shut(parts, run.iterations, around, frozenset())
                continue
            if earlier:
                yield from shut(parts, earlier, around, frozenset(parts.members([last])))
            for one in last:
                if parts.is_layer(one) and left < ALL // 2 and id(one) not in parts.apart:
                    yield from shut(parts, [[one]], around)
                elif isinstance(one, Part):
                    waiting.append((one, max(left - 1, 0), around))


# --- the folded graph ------------------------------------------------------------------------------------------------


def _users_of_ends(graph: Graph) -> dict[int, list[int]]:
    """The operations that use each leaf and constant, once for each edge."""
    ends = [node.id for node in graph.nodes if node.kind in (Kind.LEAF, Kind.CONSTANT)]
    users: dict[int, list[int]] = {end: [] for end in ends}
    for edge in graph.edges:
        if edge.source in users:
            users[edge.source].append(edge.user)
    return users


class _Drawn:
    """A graph with some of its parts closed."""

    def __init__(self, graph: Graph, closed: Sequence[Closed]) -> None:
        self._graph = graph
        self._closed = {min(one.members): one for one in closed}
        #: what a node is drawn as: itself, or the box it is in
        self._drawn = {node.id: node.id for node in graph.nodes}
        self._drawn |= {member: box for box, one in self._closed.items() for member in one.members}
        self._users = _users_of_ends(graph)
        self._saved: Counter[int] = Counter()
        for node, size in memory.shares(graph):
            self._saved[self._drawn[node.id]] += size
        #: edges that need not be drawn, as pairs of user and source, and leaves and constants that have no others
        self._passed: set[tuple[int, int]] = set()
        self._hidden: set[int] = set()
        for end, users in self._users.items():
            left_out = {(edge.user, end) for edge in self._left_out(end)}
            self._passed |= left_out
            if users and len(left_out) == len(set(users)):
                self._hidden.add(end)
        #: the hidden ones by the operation that reads them, in input order
        self._inside: dict[int, list[int]] = {}
        hidden = [edge for edge in graph.edges if edge.source in self._hidden]
        for edge in sorted(hidden, key=attrgetter("user", "input")):
            self._inside.setdefault(edge.user, []).append(edge.source)

    def graph(self) -> Graph:
        """The folded graph."""
        if not self._closed:
            return self._graph
        edges, outputs = self._edges()
        nodes = [
            self._box(self._closed[node.id], node.id, outputs.get(node.id, {})) if node.id in self._closed else node
            for node in self._graph.nodes
            if self._drawn[node.id] == node.id and node.id not in self._hidden
        ]
        roots = tuple(dict.fromkeys(self._drawn[root] for root in self._graph.roots))
        return replace(self._graph, roots=roots, nodes=tuple(nodes), edges=tuple(edges))

    def _left_out(self, end: int) -> Iterator[Edge]:
        """The edges to a leaf or constant that need not be drawn: those of boxes, where the box says it all."""
        users = self._users[end]
        boxes = {box for user in users if (box := self._drawn[user]) in self._closed}
        modules = {self._graph.by_id[user].module or str(self._drawn[user]) for user in users}
        gone = boxes if len(modules) == 1 else {box for box in boxes if self._closed[box].shown & set(users)}
        yield from (Edge(user, end, 0) for user in users if self._drawn[user] in gone)

    def _edges(self) -> tuple[list[Edge], dict[int, dict[tuple[int, int], int]]]:
        """The edges to draw, and the outputs of each box by node and output inside: numbered as they are met."""
        outputs: dict[int, dict[tuple[int, int], int]] = {}
        for root in self._graph.roots:
            if self._drawn[root] in self._closed:
                outputs.setdefault(self._drawn[root], {}).setdefault((root, 0), 0)
        inputs: dict[int, dict[tuple[int, int], int]] = {}
        edges: dict[Edge, None] = {}
        for edge in self._graph.edges:
            user, source = self._drawn[edge.user], self._drawn[edge.source]
            if user == source or (edge.user, edge.source) in self._passed:
                continue
            output, at = edge.output, edge.input
            if source in self._closed:
                known = outputs.setdefault(source, {})
                output = known.setdefault((edge.source, edge.output), len(known))
            if user in self._closed:
                read = inputs.setdefault(user, {})
                at = read.setdefault((source, output), len(read))
            edges[Edge(user, source, at, output)] = None
        return list(edges), outputs

    def _box(self, closed: Closed, number: int, outputs: Mapping[tuple[int, int], int]) -> Node:
        ends = dict.fromkeys(end for member in closed.members for end in self._inside.get(member, ()))
        return box(self._graph, closed, number, ends, outputs, self._saved[number])
