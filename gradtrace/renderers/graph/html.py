"""The graph as one page to explore in a browser: boxes that open and close, search, the source line of each node.

The page needs nothing but itself: Cytoscape.js draws and Viz.js, which is Graphviz, lays out. Both are packaged here
with their licences; a content security policy forbids every request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from gradtrace.escapes import ascii_json
from gradtrace.graphs import fold
from gradtrace.graphs.fold import ALL
from gradtrace.graphs.outline import outline
from gradtrace.model.finding import Finding, Report
from gradtrace.model.fix import Fix
from gradtrace.model.graph import Gradient, Graph, Kind, Node, SavedState
from gradtrace.model.site import Site, Stack
from gradtrace.renderers import wording
from gradtrace.renderers.edits import between, fix_of
from gradtrace.renderers.paper import Paper
from gradtrace.source.syntax import line_text
from gradtrace.source.texts import lines_around

#: shapes that are shown at first
PAGE = 80
_LABEL, _FRAMES = 40, 4
#: nodes of a graph whose parts can be opened, and bytes of all graphs: with its programs the page is below 5 MB
_MOST_NODES, _MOST_BYTES = 8_000, 2_500_000


def render(report: Report, paper: Paper) -> str:
    """What `check` found, marked on the graphs of the backward calls."""
    graphs = [fold.fitted(graph, lambda one: len(one.nodes), PAGE) for graph in report.graphs]
    failed = (report.ended.exception or "").partition(":")[0]
    ended = f"; the script ended with {failed}" if failed else ""
    calls = wording.count(report.backward_calls, "backward call")
    title = f"{report.script}: {wording.count(len(report.findings), 'finding')} in {calls}{ended}"
    return page(graphs, findings=report.findings, title=title, fixes=report.fixes)


def page(
    graphs: Sequence[Graph],
    open: Sequence[str] = (),
    findings: Sequence[Finding] | None = None,
    title: str = "",
    fixes: Sequence[Fix] = (),
) -> str:
    """The page. Of a folded graph the same boxes are open at first, and all can be opened; `open` names modules.

    `findings` are listed and marked on the graphs; None where nothing was judged.
    """
    places = _Places()
    found = _fitting(graphs, open, places)
    judged = None if findings is None else [_finding(one, places, fix_of(one, fixes)) for one in findings]
    plain = {"title": title, "graphs": found, "findings": judged, "stacks": places.plain, "sources": places.sources}
    parts = {
        "title": escape(" - ".join(filter(None, (title or "".join(one["name"] for one in found[:1]), "gradtrace")))),
        "data": _in_script(ascii_json(plain)),
        "style": _asset("page.css"),
        "script": _asset("page.js"),
        "cytoscape": _asset("cytoscape.min.js"),
        "viz": _asset("viz-global.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def _fitting(graphs: Sequence[Graph], open: Sequence[str], places: _Places) -> list[dict[str, Any]]:
    """The graphs as data, folded for good where all of it would make the page too large; one line for what is left out."""
    left, found = _MOST_BYTES, []
    for graph in graphs:
        plain = _openable(graph, open, places) if len((graph.whole or graph).nodes) <= _MOST_NODES else None
        if plain is None or _size(plain) > left:
            plain = _folded(graph, places)
        if _size(plain) > left:
            plain = _omitted(graph, places)
        left -= _size(plain)
        found.append(plain)
    return found


def _size(plain: dict[str, Any]) -> int:
    return len(json.dumps(plain, separators=(",", ":")))


def _asset(name: str) -> str:
    return files("gradtrace.renderers.graph").joinpath("page", name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """JSON in which nothing can end the script element around it."""
    return text.replace("<", "\\u003c")


# --- one graph -------------------------------------------------------------------------------------------------------


class _Places:
    """Stacks by number, as frames of file, line and words, and the source lines around them."""

    def __init__(self) -> None:
        self.sources: dict[str, dict[int, str]] = {}
        self._numbers: dict[Stack, int] = {}

    def number(self, stack: Stack) -> int:
        return self._numbers.setdefault(stack[:_FRAMES], len(self._numbers))

    @property
    def plain(self) -> list[list[list[Any]]]:
        return [[self._frame(site) for site in stack] for stack in self._numbers]

    def _frame(self, site: Site) -> list[Any]:
        name = wording.file(site.path)
        self.sources.setdefault(name, {}).update(lines_around(site.path, site.line, 3))
        return [name, site.line, f"{name}:{site.line}  {site.function}"]


def _openable(graph: Graph, open: Sequence[str], places: _Places) -> dict[str, Any]:
    """The whole graph, with blocks to open and close: at first those are open that are open in a folded one."""
    whole, depth = (graph, ALL) if graph.whole is None else (graph.whole, graph.opened)
    say = _Words(whole, places)
    found = outline(whole, depth, open)
    return _described(whole, places) | {
        "nodes": [say.node(node) | {"block": found.block_of[node.id]} for node in whole.nodes],
        "edges": _edges(whole),
        "blocks": [
            say.node(node) | {"block": block.inside, "open": block.open, "heading": say.heading(node)}
            for block, node in zip(found.blocks, found.boxes, strict=True)
        ],
    }


def _folded(graph: Graph, places: _Places) -> dict[str, Any]:
    """The graph as it is folded; its boxes cannot be opened."""
    say = _Words(graph, places)
    plain = _described(graph, places)
    plain["header"].append("too large to be opened here: `gradtrace dot -o part.html --open MODULE` draws a part")
    return plain | {"nodes": [say.node(node) | {"block": 0} for node in graph.nodes], "edges": _edges(graph)}


def _omitted(graph: Graph, places: _Places) -> dict[str, Any]:
    plain = _described(graph, places)
    plain["header"].append("left out, since it is too large for a page: `gradtrace show --depth 0` prints it")
    return plain | {"roots": []}


def _edges(graph: Graph) -> list[list[Any]]:
    return [[edge.user, edge.source, wording.outputs_used(graph.by_id[edge.source], [edge])] for edge in graph.edges]


def _described(graph: Graph, places: _Places) -> dict[str, Any]:
    roots = [graph.by_id[root] for root in dict.fromkeys(graph.roots)]
    title = ", ".join(wording.title(root) for root in roots)
    header = [wording.request(graph), ", ".join(wording.totals(graph)), wording.flow(graph), *graph.remarks]
    return {
        "name": f"{title}   {wording.request(graph)}",
        "title": title,
        "header": [text for text in header if text],
        "warnings": wording.warnings(graph),
        "stack": places.number(graph.stack),
        "roots": list(graph.roots),
        "nodes": [],
        "edges": [],
        "blocks": [],
    }


def _finding(finding: Finding, places: _Places, fix: Fix | None) -> dict[str, Any]:
    diff = between(fix.before, fix.after, wording.file(fix.path)).splitlines()[2:] if fix is not None else []
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "message": wording.printable(finding.message),
        "help": wording.printable(finding.help),
        "stack": places.number((finding.site,)),
        "occurrences": finding.occurrences,
        "related": [[places.number((one.site,)), wording.printable(one.message)] for one in finding.related],
        "fix": wording.printable(f"{fix.title} ({fix.proof})") if fix is not None else "",
        "diff": [wording.printable(row) for row in diff],
    }


class _Words:
    """What the page says of nodes."""

    def __init__(self, graph: Graph, places: _Places) -> None:
        self._main = wording.main_file(graph)
        self._device = wording.device(graph)
        self._places = places

    def node(self, node: Node) -> dict[str, Any]:
        label = [wording.printable(wording.elide(line, _LABEL)) for line in self._label(node) if line]
        place = wording.place(node.stack[0], self._main) if node.stack else ""
        text = line_text(*node.stack[0].place) if node.stack else ""
        facts = [[name, wording.printable(value)] for name, value in self._facts(node).items() if value]
        title = self._title(node)
        return {
            "id": node.id,
            "kind": node.kind.value,
            "title": title,
            "label": "\n".join(label),
            "facts": facts,
            "faults": wording.faults(node),
            "fault": bool(wording.faults(node)) and node.kind is Kind.OP,
            "level": None if node.gradient is None or wording.faults(node) else wording.level(node.gradient),
            "place": place,
            "text": text,
            "stack": self._places.number(node.stack),
        }

    @staticmethod
    def _title(node: Node) -> str:
        named = wording.assignment(node)
        if node.box is not None:
            times = wording.times(node.box).replace("   ", " ")
            return wording.printable("  ".join(filter(None, (wording.box_title(node.box) + times, node.op))))
        return wording.printable("  ".join(filter(None, (named, node.op))) or node.kind.value)

    @staticmethod
    def heading(node: Node) -> str:
        """The title of an open box."""
        title = wording.box_title(node.box, node.module) if node.box is not None else ""
        return wording.printable(wording.elide(f"{title}  {node.op}".strip(), _LABEL))

    def _label(self, node: Node) -> Iterable[str]:
        at = wording.place(node.stack[0], self._main) if node.stack else ""
        shape = wording.shapes(node.outputs, self._device)
        named = wording.assignment(node)
        where = "   ".join(filter(None, (shape, at)))
        gradient = wording.gradient(node.gradient)[-1]
        if node.box is not None:
            title = wording.box_title(node.box, node.module) + wording.times(node.box)
            return named, title, node.op, where, wording.box_facts(node.box)[1], gradient
        if node.kind is Kind.CUT:
            return node.op, named, where
        if node.kind is Kind.OP:
            return named, node.op, where, gradient, *wording.faults(node)
        return named or node.kind.value, shape, gradient

    def _facts(self, node: Node) -> Mapping[str, str]:
        facts = {
            "kind": _KINDS.get(node.kind, ""),
            "operation": node.op if node.kind is Kind.OP else "",
            "module": node.module,
            "shape": wording.shapes(node.outputs, self._device),
            "grad before": node.grad or "",
        }
        if node.gradient is not None:
            facts |= _gradient_facts(node.gradient)
        if node.box is None:
            facts["saved"] = self._saved(node)
        else:
            facts["module"] = wording.box_title(node.box) or node.module
            facts["nodes"] = f"{len(node.box.members):,}"
            facts["parameters"] = f"{node.box.parameters:,}"
            facts["saved"] = wording.size(node.box.saved_bytes)
        return facts | {"special": ", ".join(wording.tags(node))}

    def _saved(self, node: Node) -> str:
        held = [one for one in node.saved if one.state is SavedState.HELD]
        return "; ".join(
            f"{one.name} {wording.shape(one.tensor, self._device)}, {wording.size(one.bytes)}" for one in held
        )


_KINDS = {
    Kind.LEAF: "leaf",
    Kind.CONSTANT: "constant: requires no grad",
    Kind.CUT: "cut: gradients stop",
}


def _gradient_facts(gradient: Gradient) -> Mapping[str, str]:
    return {
        "gradient": f"norm {gradient.norm:.4g}, mean {gradient.mean:.4g}" + ", of the local shard" * gradient.local,
        "zeros": f"{100 * gradient.zeros:.3g} %",
        "NaN or infinite": f"{100 * gradient.nonfinite:.3g} %" if gradient.nonfinite else "",
    }
