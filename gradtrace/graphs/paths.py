"""The paths between the loss and one leaf."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from gradtrace.model.graph import Graph, Kind, Node

#: words of a long path that are shown from either end
_WORDS = 5


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
    """Everything that has a path to show: the leaves of the graphs, and the parameters that they do not lead to."""
    named = [node.name for graph in graphs for node in graph.nodes if node.kind is Kind.LEAF and node.name]
    return [*named, *(name for graph in graphs for name in graph.absent)]


def leaf_called(graph: Graph, name: str) -> str | None:
    """The leaf, or parameter that the graph does not lead to, that a name means; either may lack the model's name."""
    wanted = dotted(name)
    for original in leaf_names([graph]):
        known = dotted(original)
        if known == wanted or known.endswith(f".{wanted}") or wanted.endswith(f".{known}"):
            return original
    return None


def dotted(name: str) -> str:
    """`model.layers.0.weight` for `model.layers[0].weight`."""
    return re.sub(r"\[['\"]?(\w+|\*)['\"]?\]", r".\1", name)


def in_one_line(graph: Graph, name: str, cut: tuple[str, int] | None = None) -> str:
    """A path from the root to the leaf of that name, `loss ← head ← z ← encoder.weight`; where none leads there, the one
    to the cut at this file and line, whose sign stands in it. Empty where there is neither."""
    leaf = leaf_called(graph, name)
    ends = {node.id for node in graph.nodes if node.kind is Kind.LEAF and node.name == leaf}
    if not ends and cut is not None:
        ends = {node.id for node in graph.nodes if node.kind is Kind.CUT and node.stack and node.stack[0].place == cut}
    chain = _chain(graph, ends)
    if not chain:
        return ""
    words: list[str] = []
    for node in chain:
        word = _word(node)
        if not words or words[-1] != word:
            words.append(word)
    if chain[-1].kind is Kind.CUT:
        at = chain[-1].stack[0]
        words[-1] = f"{chain[-1].name or 'a value'} ✂ {chain[-1].op} on line {at.line}"
        words.append(name)
    else:
        words[-1] = name
    if len(words) > 2 * _WORDS:
        words = [*words[:_WORDS], "…", *words[-_WORDS:]]
    return " ← ".join(words)


def _chain(graph: Graph, ends: set[int]) -> list[Node]:
    """The nodes of a shortest path from a root to one of these ends."""
    sources: dict[int, list[int]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.user, []).append(edge.source)
    users: dict[int, int] = dict.fromkeys(graph.roots, 0)
    waiting = deque(graph.roots)
    while waiting:
        at = waiting.popleft()
        if at in ends:
            found = []
            while at:
                found.append(graph.by_id[at])
                at = users[at]
            return found[::-1]
        for source in sources.get(at, ()):
            if source not in users:
                users[source] = at
                waiting.append(source)
    return []


def _word(node: Node) -> str:
    """The variable's name, else the module's, else the operation's."""
    return node.name or node.module or node.op.removesuffix("0").removesuffix("Backward")


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
