"""How much memory a graph keeps alive by what it saved for the backward, and which nodes, modules and lines it is for.

A memory that several tensors share, as views do, counts once. That of parameters and buffers lives without the graph
and is counted apart. What lies behind `saved_tensors_hooks` is unknown, and so is what a custom Function puts into
attributes of its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TypeVar

from gradtrace.model.graph import Graph, Node, Saved, SavedState

K = TypeVar("K")


def total(nodes: Iterable[Node], parameters: bool = False) -> int:
    """Bytes of memory that the nodes keep alive; with `parameters` those that parameters and buffers hold instead."""
    shared: dict[int, int] = {}
    alone = 0
    for node in nodes:
        for one in _held(node.saved, parameters):
            if one.storage:
                shared[one.storage] = one.storage_bytes
            else:
                alone += one.bytes
    return sum(shared.values()) + alone


def owned(graph: Graph) -> Mapping[int, int]:
    """Bytes by the id of the node that they are for. Nodes that saved nothing, or parameters alone, are left out."""
    found: dict[int, int] = {}
    for node, size in shares(graph):
        found[node.id] = found.get(node.id, 0) + size
    return found


def shares(graph: Graph) -> Iterator[tuple[Node, int]]:
    """Nodes and bytes that they keep alive: of those that share a memory the first that was made. The sum is that of
    the whole graph."""
    seen: set[int] = set()
    saving = [node for node in reversed(graph.nodes) if node.saved]
    saving.sort(key=attrgetter("made"))
    for node in saving:
        for one in _held(node.saved, parameters=False):
            yield node, 0 if one.storage in seen else one.storage_bytes if one.storage else one.bytes
            if one.storage:
                seen.add(one.storage)


def by(graph: Graph, group: Callable[[Node], K]) -> list[tuple[K, int, int]]:
    """Groups of nodes with their bytes and their number of nodes that saved something, the most bytes first."""
    found: dict[K, tuple[int, int]] = {}
    for number, size in owned(graph).items():
        key = group(graph.by_id[number])
        before, nodes = found.get(key, (0, 0))
        found[key] = before + size, nodes + 1
    return sorted(((key, size, nodes) for key, (size, nodes) in found.items()), key=lambda row: -row[1])


def _held(saved: Iterable[Saved], parameters: bool) -> list[Saved]:
    return [one for one in saved if one.state is not SavedState.FREED and one.parameter == parameters]


def size(number: int) -> str:
    """`312 B`, `12.3 kB`, `1.5 GB`: powers of 1000."""
    value, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if units[0] != "B" else f"{number} B"
