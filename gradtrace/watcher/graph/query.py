"""Questions to a graph: what goes into a node, what lies below it, who used it.

With `walk` the only module that touches `next_functions`. Every look at them wraps nodes for Python, which makes deep
graphs unsafe to drop (see `walk`): what goes down far ends at a limit, or makes safe what it met.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch

from gradtrace.watcher.graph import walk
from gradtrace.watcher.graph.walk import ACCUMULATE

#: as the limit of a walk: it ends where the graph does
WHOLE = sys.maxsize


class GraphNode(Protocol):
    """A node of torch's graph, as far as walks know it."""

    @property
    def next_functions(self) -> tuple[tuple[GraphNode | None, int], ...]:
        """For each input the node that made it, None for one without a graph, and the number of that node's output."""

    @property
    def metadata(self) -> dict[Any, Any]:
        """Lives in C++ as long as the node."""

    @property
    def variable(self) -> torch.Tensor:
        """The leaf; of nodes of type `ACCUMULATE` alone."""


def edges(node: GraphNode) -> tuple[tuple[GraphNode | None, int], ...]:
    """For each input of a node what made it, None where it has no graph, and as which of its outputs."""
    return node.next_functions


def slots(node: GraphNode) -> list[GraphNode | None]:
    """For each input of a node what made it, None where it has no graph."""
    return [child for child, _ in node.next_functions]


def inputs(node: GraphNode) -> list[GraphNode]:
    """What made the inputs of a node, leaves included, as far as they have a graph."""
    return [child for child, _ in node.next_functions if child is not None]


def first_input(node: GraphNode) -> GraphNode | None:
    """What made the first input of a node: the only one of a view."""
    return node.next_functions[0][0]


def leaf_inputs(*nodes: GraphNode) -> list[torch.Tensor]:
    """The leaves that these nodes take in themselves, once for each time."""
    found = [child for node in nodes for child, _ in node.next_functions if type(child) is ACCUMULATE]
    return [leaf.variable for leaf in found if leaf is not None]


def passed(node: GraphNode | None, names: Container[str], limit: int) -> list[GraphNode]:
    """The nodes in a row, from this one on down the first inputs, whose names are among these."""
    found: list[GraphNode] = []
    while node is not None and type(node).__name__ in names and len(found) < limit:
        found.append(node)
        node = first_input(node)
    return found


def past(node: GraphNode | None, names: Container[str], limit: int | None = None) -> GraphNode | None:
    """What lies behind such nodes in a row: the node itself where it is none of them; None where no graph does."""
    row = passed(node, names, walk.LIMIT if limit is None else limit)
    return first_input(row[-1]) if row else node


def below(roots: Iterable[GraphNode], limit: int | None = None) -> dict[GraphNode, None]:
    """The roots and the nodes below them, leaves included, in the order of the inputs; makes them safe to drop.

    At most `limit` of them; where that is None, as many as one walk of `check` visits.
    """
    found = _descend(roots, walk.LIMIT if limit is None else limit)
    walk.keep(list(found))
    return found


def strictly_below(nodes: Iterable[GraphNode]) -> set[GraphNode]:
    """What lies below any of these nodes, leaves included. For graphs that are walked as a whole, and so made safe to
    drop, in any case: nodes of different graphs must not hold each other."""
    return set(_descend((child for node in nodes for child in inputs(node)), WHOLE))


def _descend(roots: Iterable[GraphNode], limit: int) -> dict[GraphNode, None]:
    found: dict[GraphNode, None] = {}
    waiting = list(roots)[::-1]
    while waiting and len(found) < limit:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [child for child, _ in reversed(node.next_functions) if child is not None]
    return found


def leaves_of(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves of the graphs behind these tensors."""
    found = walk.visit(walk.roots_of(tensors))
    walk.keep(list(found.nodes))
    return found.leaves


def takers_of(leaf: torch.Tensor, nodes: Iterable[GraphNode]) -> list[GraphNode]:
    """Those of these nodes that take the leaf in."""
    return [node for node in nodes if any(one is leaf for one in leaf_inputs(node))]


def users_of(nodes: Iterable[GraphNode]) -> dict[GraphNode, list[GraphNode]]:
    """Which of these nodes used each node, once for each time."""
    found: dict[GraphNode, list[GraphNode]] = {}
    for node in nodes:
        for child, _ in node.next_functions:
            if child is not None:
                found.setdefault(child, []).append(node)
    return found


def uses_of(nodes: Iterable[GraphNode]) -> dict[GraphNode, list[tuple[GraphNode, int]]]:
    """Which of these nodes used each node, and as which input."""
    found: dict[GraphNode, list[tuple[GraphNode, int]]] = {}
    for node in nodes:
        for index, (child, _) in enumerate(node.next_functions):
            if child is not None:
                found.setdefault(child, []).append((node, index))
    return found


def above(node: Any, users: Mapping[Any, Sequence[Any]]) -> Iterator[tuple[GraphNode, GraphNode]]:
    """The nodes that a node went into, the nearest first, each with the one below it by which it was reached."""
    seen = {node}
    waiting = [node]
    for lower in waiting:
        for upper in users.get(lower, ()):
            if upper not in seen:
                seen.add(upper)
                waiting.append(upper)
                yield upper, lower


def path_up(node: Any, reached_from: Mapping[Any, Any]) -> Iterator[GraphNode]:
    """A node and those above it up to a root, on the path by which a visit reached it first."""
    while node is not None:
        yield node
        node = reached_from.get(node)


def restrict(found: walk.Visit, wanted: Sequence[Any]) -> walk.Visit:
    """What of the visit runs when gradients of `wanted` alone are computed: the nodes between the roots and them."""
    ends = set(walk.roots_of(wanted))
    # the gradient of an input is taken before its node runs
    old = [edge for edge in found.old if any(one in ends for one in below([edge[1]]) if one is not edge[1])]
    users = users_of(found.nodes)
    runs: set[Any] = set()
    waiting = [*ends, *(node for _, node, _ in old)]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in runs:
                runs.add(user)
                waiting.append(user)
    leaves = [leaf for leaf in found.leaves if any(leaf is one for one in wanted)]
    nodes = {node: user for node, user in found.nodes.items() if node in runs}
    kept = {mark for node in nodes if (mark := walk.mark_of(node))} if found.kept else set()
    return walk.Visit(nodes, leaves, old, kept, found.whole)
