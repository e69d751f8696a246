"""Prints where the paths of a graph are cut, and which parameters it does not lead to.

z  ✂ detach() at model.py:20, cuts off TanhBackward0: z = torch.tanh(encoder(x)).detach()
no path to model.encoder.weight, model.encoder.bias
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gradtrace.model.finding import Finding
from gradtrace.model.graph import Graph, Kind, Node
from gradtrace.renderers import wording
from gradtrace.source.syntax import line_text

#: what is no operation
_KINDS = {"leaf": "a leaf"}
#: parameters that are named
_NAMES = 8


def render(graph: Graph, findings: Sequence[Finding], console: Console) -> None:
    """One line for each cut, one for the parameters that no path leads to, and what was found about such."""
    main = graph.stack[0].path if graph.stack else ""
    lines = [_cut(graph, node, main) for node in graph.nodes if node.kind is Kind.CUT]
    for line in dict.fromkeys(lines) or ["this graph has no cut in it"]:
        console.print(Text(line), soft_wrap=True)
    for finding in findings:
        console.print(Text(f"{wording.place(finding.site, main)}: {finding.message}"), soft_wrap=True)
    if graph.absent:
        more = f" and {len(graph.absent) - _NAMES} more" if len(graph.absent) > _NAMES else ""
        console.print(Text(f"no path to {', '.join(graph.absent[:_NAMES])}{more}", "bold red"), soft_wrap=True)


def _cut(graph: Graph, node: Node, main: str) -> str:
    behind = [graph.by_id[edge.source] for edge in graph.edges if edge.user == node.id]
    name = node.name or next((one.name for one in behind if one.name), "") or "a value"
    at = f" at {wording.place(node.stack[0], main)}" if node.stack else ""
    operation = next((one.op for one in behind if one.op), "")
    text = line_text(*node.stack[0].place) if node.stack else ""
    of = f", cuts off {_KINDS.get(operation, operation)}" if operation else ""
    return f"{name}  \u2702 {node.op}{at}{of}" + (f": {wording.printable(text)}" if text else "")
