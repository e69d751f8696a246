"""Where the memory is: the modules and lines for which a graph keeps most, as rows of text with a bar each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gradtrace.graphs import memory
from gradtrace.model.graph import Graph, Node
from gradtrace.renderers import wording

_MOST, _BAR = 10, 10


def rows(graph: Graph) -> Iterator[tuple[str, str]]:
    """Pairs of style and text: headings, and a row for each of the largest groups."""
    main = wording.main_file(graph)

    def module(node: Node) -> str:
        """Equal blocks together: `layers.*.linear`."""
        return re.sub(r"\b\d+\b", "*", node.module) or "outside of modules"

    def line(node: Node) -> str:
        return wording.place(node.stack[0], main) if node.stack else "unknown line"

    saved, beside = memory.total(graph.nodes), memory.total(graph.nodes, parameters=True)
    text = f", and {wording.size(beside)} of parameters, which live without the graph" if beside else ""
    yield "quiet", f"{wording.size(saved)} saved for backward{text}:"
    if any(node.module for node in graph.nodes):
        yield from _groups(graph, "by module", module)
    yield from _groups(graph, "by line", line)


def _groups(graph: Graph, heading: str, group: Callable[[Node], str]) -> Iterator[tuple[str, str]]:
    found = memory.by(graph, group)
    whole = sum(size for _, size, _ in found)
    yield "quiet", f"{heading}:"
    wide = max((len(name) for name, *_ in found[:_MOST]), default=0)
    for name, size, nodes in found[:_MOST]:
        bar = "█" * round(_BAR * size / whole) if whole else ""
        share = f"{100 * size / whole:3.0f}%" if whole else ""
        shown = wording.printable(name).ljust(wide)
        yield "", f"{wording.size(size):>9}  {share}  {bar:<{_BAR}}  {shown}  {wording.count(nodes, 'operation')}"
    if len(found) > _MOST:
        rest = sum(size for _, size, _ in found[_MOST:])
        yield "quiet", f"{wording.size(rest):>9}  {'':{_BAR + 6}}  {len(found) - _MOST:,} more"
