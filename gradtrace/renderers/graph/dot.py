"""The graph as a picture: DOT text, and through Graphviz SVG, PNG or PDF.

Layout is what costs, not the drawing: a parameter used at every step of a recurrent net would tie the whole picture to
one point. So leaves and constants are drawn again, small, at each use, and layout has a time limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Literal, TypeAlias

from graphviz import Digraph, nohtml  # type: ignore[import-untyped]

from gradtrace.errors import OutputError
from gradtrace.host.streams import put_file
from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState
from gradtrace.renderers import wording
from gradtrace.source.syntax import line_text

Direction: TypeAlias = Literal["forward", "backward"]

#: shapes of a picture that fit a page
PAGE = 80
#: up to how many saved tensors get a shape of their own; more stand in the labels of the nodes that saved them
_SAVED_DRAWN = 12
_LABEL = 44

_GREY, _INK = "#8a8f98", "#24292f"
_LOOKS: dict[str, dict[str, str]] = {
    "op": {"shape": "box", "style": "rounded,filled", "fillcolor": "#dbe9fb", "color": "#4a7ebb"},
    "box": {"shape": "box3d", "style": "filled", "fillcolor": "#e6dcf7", "color": "#7a5cb5"},
    "leaf": {"shape": "ellipse", "style": "filled", "fillcolor": "#cdeccb", "color": "#3c8a3a", "penwidth": "1.6"},
    "constant": {"shape": "ellipse", "style": "dashed", "color": _GREY, "fontcolor": "#57606a"},
    "cut": {"shape": "octagon", "style": "filled", "fillcolor": "#b3261e", "color": "#7a1812", "fontcolor": "white"},
    "saved": {"shape": "note", "style": "filled", "fillcolor": "#fff3c4", "color": "#b8860b", "fontsize": "9"},
}
_PALE = {"fillcolor": "#f6f6f6", "color": _GREY, "fontcolor": "#57606a"}
_GONE = {"fillcolor": "#e4e4e4", "color": "#57606a", "style": "filled,dashed", "penwidth": "1.6"}
_BROKEN = {"fillcolor": "#f9c9a8", "color": "#c0392b", "style": "filled,diagonals", "penwidth": "2"}
_LOOKS |= {
    "unreached": {**_LOOKS["op"], **_PALE, "style": "rounded,filled,dotted"},
    "box unreached": {**_LOOKS["box"], **_PALE, "style": "filled,dotted"},
    "leaf unreached": {**_LOOKS["leaf"], **_PALE, "style": "filled,dotted"},
    "freed": {"shape": "box", **_GONE},
    "modified": {"shape": "box", **_BROKEN},
    "saved freed": {**_LOOKS["saved"], **_GONE},
    "saved modified": {**_LOOKS["saved"], **_BROKEN, "style": "filled,bold"},
}
#: from vanishing to exploding gradients
_RAMP = ("#a9bce8", "#c3d0ee", "#c9e6ea", "#e3f3dc", "#d2ecca", "#c0e3b6", "#fbe3a0", "#f2a9a0")
_GRAPH = {"fontname": "Helvetica", "fontsize": "12", "fontcolor": _INK, "labelloc": "t", "labeljust": "l"}
_GRAPH |= {"bgcolor": "white", "nodesep": "0.22", "ranksep": "0.32", "pad": "0.2", "outputorder": "edgesfirst"}
_NODE = {"fontname": "Helvetica", "fontsize": "10", "fontcolor": _INK, "margin": "0.10,0.05", "height": "0.2"}
_EDGE = {"fontname": "Helvetica", "fontsize": "8", "fontcolor": "#57606a", "color": "#57606a", "arrowsize": "0.6"}
_CLUSTER = {
    "style": "rounded",
    "color": "#b7bdc6",
    "fontcolor": "#57606a",
    "fontsize": "10",
    "labeljust": "l",
    "margin": "6",
}
_WHOLE = {"fontsize": "12", "fontcolor": _INK, "labeljust": "l", "margin": "16"}

# --- text ------------------------------------------------------------------------------------------------------------


def source(graphs: Sequence[Graph], direction: Direction = "forward") -> str:
    """The graphs as one DOT text.

    Forward, data flows down to the loss. Backward, the same picture has the arrows that gradients take, up from the
    loss to the leaves.
    """
    dot = Digraph("gradtrace", graph_attr={**_GRAPH, "rankdir": "TB" if direction == "forward" else "BT"})
    dot.attr("node", **_NODE)
    dot.attr("edge", **_EDGE)
    for number, graph in enumerate(graphs, 1):
        drawing = _DotDrawing(graph, f"g{number}", direction)
        if len(graphs) == 1:
            dot.attr(label=_label(_header(graph), "l"))
            drawing.draw(dot)
        else:
            with dot.subgraph(name=f"cluster_g{number}") as part:
                part.attr(label=_label(_header(graph), "l"), **{**_CLUSTER, **drawing.top, **_WHOLE})
                drawing.draw(part)
    return str(dot.source)


def _header(graph: Graph) -> list[str]:
    titles = [wording.title(graph.by_id[root]) for root in dict.fromkeys(graph.roots)]
    shapes = [wording.shapes(graph.by_id[root].outputs) for root in dict.fromkeys(graph.roots)]
    roots = [f"{title}  {shape}".rstrip() for title, shape in zip(titles, shapes, strict=True)]
    asked = wording.request(graph)
    if graph.stack:
        asked += "   " + wording.elide(line_text(graph.stack[0].path, graph.stack[0].line), 80)
    return [
        *roots,
        asked.rstrip(),
        ", ".join(wording.totals(graph)),
        wording.folding(graph),
        *wording.warnings(graph),
        *graph.remarks,
    ]


def _label(lines: Iterable[str], end: str = "n") -> str:
    r"""Lines of a label, shown literally: no escapes such as `\N`, no HTML, no entities; `end` "l" sets them left."""
    shown = [_plain(line).replace("\\", "\\\\") for line in lines if line]
    return _literal(f"\\{end}".join([*shown, ""] if end == "l" else shown))


def _tooltip(lines: Iterable[str]) -> str:
    """Lines of a tooltip. Graphviz (2.43 at least) reads escapes there twice, so that a backslash takes four."""
    return _literal("&#10;".join(_plain(line).replace("\\", 4 * "\\") for line in lines if line))


def _literal(text: str) -> str:
    """A string that the graphviz package quotes even where it looks like HTML."""
    quoted: str = nohtml(text)
    return quoted


def _beside(*words: str) -> str:
    return "   ".join(filter(None, words))


def _plain(text: str) -> str:
    return wording.printable(text.rstrip()).replace("&", "&amp;")


# --- drawing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shape:
    """A shape of the picture, and the module it is drawn in."""

    id: str
    module: str
    look: str
    label: tuple[str, ...]
    tooltip: tuple[str, ...]
    small: bool = False
    #: of the gradient that comes by
    level: int | None = None


class _DotDrawing:
    """One graph as shapes and arrows."""

    def __init__(self, graph: Graph, prefix: str, direction: Direction) -> None:
        self._graph = graph
        self._prefix = prefix
        self._forward = direction == "forward"
        self.top = {"labelloc": "t" if self._forward else "b"}  # rankdir BT flips boxes
        self._main = wording.main_file(graph)
        self._device = wording.device(graph)
        self._reached = wording.reached(graph)
        self._saved_drawn = sum(len(node.saved) for node in graph.nodes) <= _SAVED_DRAWN

    def draw(self, dot: Digraph) -> None:
        shapes = list(self._shapes())
        boxes = _boxes({shape.module for shape in shapes})
        parts: dict[str, Digraph] = {"": dot}
        parts |= {box: Digraph(f"cluster_{self._prefix}_{number}") for number, box in enumerate(boxes, 1)}
        for shape in shapes:
            small = {"fontsize": "8", "margin": "0.04,0.02", "penwidth": "1"} if shape.small else {}
            ramp = {} if shape.level is None else {"fillcolor": _RAMP[shape.level]}
            look = {**_LOOKS[shape.look], **small, **ramp, "tooltip": _tooltip(shape.tooltip)}
            parts[shape.module].node(shape.id, _label(shape.label), **look)
        for box, outer in sorted(boxes.items(), key=lambda pair: -pair[0].count(".")):
            label = _label([box.removeprefix(f"{outer}.")])
            parts[box].attr(label=label, tooltip=_tooltip([box]), **_CLUSTER, **self.top)
            parts[outer].subgraph(parts[box])
        for tail, head, looks in self._arrows():
            dot.edge(tail, head, **looks)

    def _shapes(self) -> Iterator[_Shape]:
        for node in self._graph.nodes:
            if node.kind not in (Kind.LEAF, Kind.CONSTANT):
                shape = _Shape(
                    self._id(node), node.module, self._look(node), self._label_lines(node), self._tooltip_lines(node)
                )
                yield replace(shape, level=_level(node))
                if self._saved_drawn:
                    yield from (self._saved(node, number) for number in range(len(node.saved)))
                continue
            users = [self._graph.by_id[user].module for user in self._users.get(node.id, ())]
            for number, module in enumerate(users or [""]):
                name = (node.name or wording.shapes(node.outputs, self._device) or "constant",)
                label = self._label_lines(node) if number == 0 else name
                copy = _Shape(
                    self._id(node, number), module, self._look(node), label, self._tooltip_lines(node), number > 0
                )
                yield replace(copy, level=_level(node))

    @cached_property
    def _users(self) -> Mapping[int, Mapping[int, int]]:
        """The nodes that read each node, numbered from 0 in the order of the edges."""
        found: dict[int, dict[int, int]] = {}
        for edge in self._graph.edges:
            users = found.setdefault(edge.source, {})
            users.setdefault(edge.user, len(users))
        return found

    def _id(self, node: Node, copy: int = 0) -> str:
        return f"{self._prefix}_n{node.id}" + (f"_{copy + 1}" if copy else "")

    def _look(self, node: Node) -> str:
        reached, faults = node.id in self._reached, " ".join(wording.faults(node))
        if node.kind is Kind.LEAF:
            return "leaf" if reached else "leaf unreached"
        if node.kind in (Kind.CONSTANT, Kind.CUT):
            return str(node.kind.value)
        if faults:
            return "modified" if "modified" in faults else "freed"
        if node.kind is Kind.BOX:
            return "box" if reached else "box unreached"
        return "op" if reached else "unreached"

    def _label_lines(self, node: Node) -> tuple[str, ...]:
        """The label: what fits on a node."""
        lines = [wording.elide(line, _LABEL) for line in self._lines(node) if line]
        lines += wording.gradient(node.gradient)[1:2]
        lines += wording.faults(node)
        lines.append(", ".join(wording.tags(node)))
        return tuple(filter(None, lines)) or (node.kind.value,)

    def _lines(self, node: Node) -> list[str]:
        """Name, operation, shape and place, as far as the node has them."""
        named = wording.assignment(node)
        shape = wording.shapes(node.outputs, self._device)
        if node.kind is Kind.CUT:
            where = f" at {wording.place(node.stack[0])}" if node.stack else ""
            return [node.op + where, _beside(named, shape)]
        if node.kind in (Kind.LEAF, Kind.CONSTANT):
            return [named, _beside(shape, f"grad {node.grad}" if node.grad else "")]
        at = wording.place(node.stack[0], self._main) if node.stack else ""
        if node.box is not None:
            title = wording.box_title(node.box, node.module) + wording.times(node.box)
            return [named, title, node.op, _beside(shape, at), wording.box_facts(node.box)[0]]
        saves = "" if self._saved_drawn else wording.saves(node.saved, self._device)
        return [named, node.op, _beside(shape, at), saves]

    def _tooltip_lines(self, node: Node) -> tuple[str, ...]:
        """The tooltip: all there is."""
        site = node.stack[0] if node.stack else None
        ends = {Kind.CONSTANT: "constant: requires no grad", Kind.CUT: "cut: no gradient goes further"}
        return (
            f"#{node.id} {node.name or ''}" + (f" = {node.value}" if node.value is not None else ""),
            ends.get(node.kind, "leaf" if node.kind is Kind.LEAF else ""),
            wording.box_title(node.box) if node.box is not None else "",
            node.op,
            wording.shapes(node.outputs, self._device),
            f"{wording.place(site)}   {line_text(site.path, site.line)}" if site else "",
            f"in {node.module}" if node.module else "",
            f"grad {node.grad}" if node.grad else "",
            wording.gradient(node.gradient)[0],
            *(_saved_fact(saved, self._device) for saved in node.saved),
            wording.box_facts(node.box)[0] if node.box is not None else "",
            *node.tags,
        )

    def _saved(self, node: Node, number: int) -> _Shape:
        saved = node.saved[number]
        looks = {SavedState.HELD: "saved", SavedState.FREED: "saved freed", SavedState.MODIFIED: "saved modified"}
        state = wording.STATES.get(saved.state, "")
        label = (f"saved {saved.name}", wording.shape(saved.tensor, self._device), state)
        facts = (_saved_fact(saved, self._device), f"saved by {node.op}")
        return _Shape(f"{self._id(node)}_s{number}", node.module, looks[saved.state], label, facts)

    def _arrows(self) -> Iterator[tuple[str, str, Mapping[str, str]]]:
        for edge, *others in self._together():
            user, source = self._graph.by_id[edge.user], self._graph.by_id[edge.source]
            copied = source.kind in (Kind.LEAF, Kind.CONSTANT)
            far = self._id(source, self._users[source.id][user.id] if copied else 0)
            look = self._arrow(edge, user, source)
            if others:
                look |= {"label": f"× {len(others) + 1}", "tooltip": ""}
            yield *self._directed(far, self._id(user)), look
        if self._saved_drawn:
            yield from self._saved_arrows()

    def _together(self) -> Iterable[list[Edge]]:
        """The edges, all those between a box and another node as one."""
        boxes = {node.id for node in self._graph.nodes if node.kind is Kind.BOX}
        found: dict[object, list[Edge]] = {}
        for edge in self._graph.edges:
            boxed = edge.user in boxes or edge.source in boxes
            found.setdefault((edge.user, edge.source) if boxed else edge, []).append(edge)
        return found.values()

    def _saved_arrows(self) -> Iterator[tuple[str, str, Mapping[str, str]]]:
        for node in self._graph.nodes:
            for number, saved in enumerate(node.saved):
                ends = self._directed(f"{self._id(node)}_s{number}", self._id(node))
                yield *ends, {"style": "dotted", "dir": "none", "tooltip": _tooltip([f"saved {saved.name}"])}

    def _directed(self, source: str, user: str) -> tuple[str, str]:
        """Tail and head of the arrow between two nodes."""
        return (source, user) if self._forward else (user, source)

    def _arrow(self, edge: Edge, user: Node, source: Node) -> dict[str, str]:
        """Solid where a gradient flows; backward has no arrowhead where none does, and a bar before a cut."""
        used = wording.outputs_used(source, [edge])
        shape = source.outputs[edge.output : edge.output + 1]
        whole = source.name or source.op, wording.shapes(shape, self._device)
        facts = [*whole, f"input {edge.input} of {user.op}", used]
        look = {"tooltip": _tooltip(facts)} | ({"label": _label([used])} if used else {})
        if source.kind not in (Kind.LEAF, Kind.CONSTANT):
            look["weight"] = "8"  # keeps the main line straight and lets leaves step aside
        if source.kind is Kind.CUT:
            return look | {"color": "#b3261e", "style": "dashed"} | ({} if self._forward else {"arrowhead": "tee"})
        if source.kind is Kind.CONSTANT or user.kind is Kind.CUT or user.id not in self._reached:
            return look | {"color": _GREY, "style": "dashed"} | ({} if self._forward else {"dir": "none"})
        return look


def _level(node: Node) -> int | None:
    return None if node.gradient is None or wording.faults(node) else wording.level(node.gradient)


def _saved_fact(saved: Saved, device: str) -> str:
    words = [f"saves {saved.name}", wording.shape(saved.tensor, device), f"({wording.size(saved.bytes)})"]
    return " ".join(word for word in (*words, wording.STATES.get(saved.state, "")) if word)


def _boxes(modules: Iterable[str]) -> Mapping[str, str]:
    """The boxes to draw, each with the box around it: the modules that own something, and what holds several boxes."""
    own = {module for module in modules if module}
    every = {module[:end] for module in own for end in (*_dots(module), len(module))}
    inner: dict[str, set[str]] = {}
    for module in every:
        inner.setdefault(module.rpartition(".")[0], set()).add(module)
    drawn = {module for module in every if module in own or len(inner.get(module, ())) > 1}
    outer = {module: [module[:end] for end in _dots(module) if module[:end] in drawn] for module in drawn}
    return {module: outer[module][-1] if outer[module] else "" for module in sorted(drawn)}


def _dots(module: str) -> list[int]:
    return [at for at, letter in enumerate(module) if letter == "."]


# --- layout ----------------------------------------------------------------------------------------------------------

_NO_DOT = (
    "cannot draw {path}: the program `dot` of Graphviz is missing. Install it (apt-get install graphviz, "
    "brew install graphviz or conda install graphviz), or write the DOT text with `-o graph.dot`"
)
_TOO_LARGE = (
    "cannot draw {path}: the graph has no layout within {seconds:g} seconds. Write the DOT text with "
    "`-o graph.dot`, or run fewer steps"
)


def require_program(path: Path) -> None:
    """Says before a run, not after it, that nothing can be drawn."""
    if shutil.which("dot") is None:
        raise OutputError(_NO_DOT.format(path=path))


def write(source: str, path: Path, format: str, seconds: float = 60) -> str:
    """Draws DOT text into a file and says which program laid it out.

    `dot` gets half the time; a graph too large for it goes to `sfdp`, which is fast and knows no ranks. The file
    appears when it is complete, or not at all.
    """
    if not path.exists() and not os.access(path.parent, os.W_OK):  # before the layout, which takes its time
        raise OutputError(f"cannot write {path}: {path.parent} is no directory that can be written to")
    started = monotonic()
    for engine, options, limit in (("dot", [], seconds / 2), ("sfdp", ["-Goverlap=scale", "-Gsplines=line"], seconds)):
        try:
            put_file(path, _picture(engine, [f"-T{format}", *options], source, limit - (monotonic() - started), path))
        except subprocess.TimeoutExpired:
            continue
        return engine
    raise OutputError(_TOO_LARGE.format(path=path, seconds=seconds))


def _picture(engine: str, options: Sequence[str], source: str, seconds: float, path: Path) -> bytes:
    try:
        done = subprocess.run(
            [engine, *options], input=source.encode(), capture_output=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        raise OutputError(_NO_DOT.format(path=path)) from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        raise OutputError(f"cannot draw {path}: {engine}: {said[0]}")
    return done.stdout
