"""The paths between the loss and one leaf."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradtrace.model.graph import Graph, Kind


def toward(graph: Graph, name: str) -> Graph:
    """What of the graph lies between its roots and the leaf of that name: all of it that the leaf's gradient comes by.

    Where no path leads there, the paths to where they end, which are cuts; the roots alone where nothing is cut.
    """
    ends = [node.id for node in graph.nodes if node.kind is Kind.LEAF and node.name == name]
    remark = f"only what lies on the paths to {name}"
    if not ends:
        ends = [node.id for node in graph.nodes if node.kind is Kind.CUT]
        remark = f"no path leads to {name}" + (": they end at the cuts shown here" if ends else ", and none is cut")
    kept = _above(graph, ends)
    remark += f": {len(kept):,} of {len(graph.nodes):,} nodes" if kept else ""
    cut = {number for number in kept if graph.by_id[number].kind is Kind.CUT}
    kept |= {*graph.roots, *(edge.source for edge in graph.edges if edge.user in cut)}
    nodes = tuple(node for node in graph.nodes if node.id in kept)
    edges = tuple(edge for edge in graph.edges if edge.user in kept and edge.source in kept)
    return replace(graph, nodes=nodes, edges=edges, remarks=(remark, *graph.remarks))


def leaf_names(graphs: Iterable[Graph]) -> list[str]:
    """Everything that can be asked for: the leaves of the graphs, and the parameters that they do not lead to."""
    named = [node.name for graph in graphs for node in graph.nodes if node.kind is Kind.LEAF and node.name]
    return [*named, *(name for graph in graphs for name in graph.absent)]


def _above(graph: Graph, ends: Iterable[int]) -> set[int]:
    """These nodes and all that read them, directly or not."""
    users: dict[int, list[int]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, []).append(edge.user)
    found: set[int] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += users.get(node, ())
    return found
