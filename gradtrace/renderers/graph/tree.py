"""The graph as text for a person at a terminal: from the root down the page to the leaves.

What feeds a node is below it. The main line goes straight down at one level; leaves and side branches hang on it.
A node that several branches lead to stands once, on the line of the node where these branches part (its immediate
dominator), and elsewhere by its number. So residual networks, recurrent nets and sums of losses stay flat: a level of
indentation at least halves what is left, and a graph of 100,000 nodes needs no more than 17 levels.

Graph -> `_page` -> `_rows` -> `_folded` -> `_Facts` -> lines of spans -> rich segments. No recursion anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from gradtrace.graphs import memory
from gradtrace.model.graph import Box, Edge, Graph, Kind, Node, SavedState
from gradtrace.renderers import wording
from gradtrace.renderers.graph.saved import rows as rows_of_memory
from gradtrace.source.syntax import line_text

#: rows of a tree that fit a screen, or nearly
PAGE = 60
#: the longest iteration, in rows, that is searched for, and the fewest iterations that are worth folding
_LONGEST_TURN, _FEWEST_ITERATIONS = 400, 6
#: the space facts get even where deep guides leave less
_LEAST_ROOM = 30
_ROOT = 0

_STYLES = {
    "guide": "dim",
    "warning": "bold yellow",
    "name": "bold",
    "leaf": "bold green",
    "op": "",
    "box": "bold cyan",
    "shape": "cyan",
    "place": "blue",
    "quiet": "dim",
    "tag": "magenta",
    "fault": "bold red",
    "number": "yellow",
    "source": "",
} | {
    f"level {number}": style
    for number, style in enumerate(("bold blue", "blue", "cyan", "green", "green", "green", "yellow", "bold red"))
}
#: where a gradient comes by, and where none does
_SYMBOLS = {Kind.OP: "●○", Kind.LEAF: "◆◇", Kind.CONSTANT: "··", Kind.CUT: "✂✂", Kind.BOX: "▣▢"}
_SYMBOL_STYLES = {Kind.OP: "op", Kind.LEAF: "leaf", Kind.CONSTANT: "quiet", Kind.BOX: "box"}
_MEANINGS = {
    Kind.OP: "operation",
    Kind.LEAF: "leaf",
    Kind.CONSTANT: "constant",
    Kind.BOX: "folded",
    Kind.CUT: "cut",
}
_ASCII = str.maketrans({
    "│": "|", "├": "|", "└": "`", "─": "-", "●": "*", "○": "o", "◆": "+", "◇": "=", "·": ".", "✂": "x", "⋮": ":", "▣": "@", "▢": "0",
    "…": "~", "×": "x", "█": "#", "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#", "∇": "g", "┃": "|", "⚠": "!",
})  # fmt: skip


class Span(NamedTuple):
    """A piece of a line in one style of `_STYLES`."""

    text: str
    style: str


Line: TypeAlias = list[Span]


@dataclass(frozen=True, slots=True)
class Row:
    """One node at one place of the page: in full, or by its number where it stands elsewhere."""

    #: the guides of the levels above, one character a level
    trail: str
    #: how it hangs on the row it feeds: "├", "└", or "" on the line itself
    joint: str
    node: Node
    #: through which its user reads it; none for a root
    edges: tuple[Edge, ...]
    full: bool

    @property
    def below(self) -> str:
        """The trail of what hangs on it."""
        return self.trail + {"├": "│", "└": " ", "": ""}[self.joint]


@dataclass(frozen=True, slots=True)
class Fold:
    """Turns of a repeated structure that are not shown."""

    trail: str
    iterations: int
    rows: tuple[Row, ...]


class Fact(NamedTuple):
    """Something to say about a node, in forms from long to short; what has the lower rank is shortened first."""

    style: str
    forms: tuple[str, ...]
    rank: int = 9


def render(
    graphs: Sequence[Graph], console: Console, fold: bool = True, saved: bool = False, legend: bool = False
) -> None:
    """Prints each graph: a header, then the tree from its root back to its leaves; at the end a `legend` of the signs.

    With `fold`, long runs of the same operations at the same lines are shown by their first and last iteration; cuts and
    faults are never folded away. With `saved`, the bytes kept for the backward stand at each operation and, by module
    and line, above the tree.
    """
    paint = {name: console.get_style(style) for name, style in _STYLES.items()}
    paint |= {f"{name} unreached": style + Style(dim=True) for name, style in paint.items()}
    lines = _pages(graphs, console.width, fold, saved)
    if legend:
        lines = chain(lines, _legend(graphs, console.width))
    if _needs_ascii(console.encoding):
        lines = ([Span(_ascii(text, console.encoding), style) for text, style in line] for line in lines)
    while chunk := list(islice(lines, 1_000)):
        if console.color_system is None:
            segments = [Segment("".join(text for text, _ in line) + "\n") for line in chunk]
        else:
            segments = [segment for line in chunk for segment in _segments(line, paint)]
        console.print(Segments(segments), soft_wrap=True, end="")


def _legend(graphs: Sequence[Graph], width: int) -> Iterator[Line]:
    """What the signs mean, of those that occur."""
    kinds = {node.kind for graph in graphs for node in graph.nodes}
    signs = [f"{_SYMBOLS[kind][0]} {meaning}" for kind, meaning in _MEANINGS.items() if kind in kinds]
    if Kind.CUT in kinds:
        signs.append("○ ◇ ▢ no gradient arrives")
    yield []
    yield from _fit([Fact("quiet", (sign,)) for sign in signs], [], "  ", width)


def _needs_ascii(encoding: str) -> bool:
    try:
        "".join(map(chr, _ASCII)).encode(encoding)
    except UnicodeEncodeError:
        return True
    return False


def _ascii(text: str, encoding: str) -> str:
    return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)


def _segments(line: Line, paint: Mapping[str, Style]) -> Iterator[Segment]:
    yield from (Segment(text, paint[style] if style else None) for text, style in line)
    yield Segment.line()


def _pages(graphs: Sequence[Graph], width: int, fold: bool, saved: bool) -> Iterator[Line]:
    for number, graph in enumerate(graphs):
        if number:
            yield []
        yield from _header(graph, width)
        for style, text in rows_of_memory(graph.whole or graph) if saved else ():
            yield from [[]] if style and text.endswith(":") else []
            yield [Span("  " + _cropped(text, width - 2), style)]
        yield []
        yield from _tree(graph, width, fold, saved)


# --- the header ------------------------------------------------------------------------------------------------------

_INDENT = [Span("  ", "guide")]


def _header(graph: Graph, width: int) -> Iterator[Line]:
    asked = Fact("place", _forms(wording.request(graph), 40), 0)
    roots = [_root(graph.by_id[root]) for root in dict.fromkeys(graph.roots)]
    for facts in [[*roots[0], asked]] if len(roots) == 1 else [*roots, [asked]]:
        yield from _fit(facts, [], "  ", width)
    if graph.stack and (text := line_text(graph.stack[0].path, graph.stack[0].line)):
        line = f"{graph.stack[0].line} │ "
        yield [Span("  ", ""), Span(line, "guide"), Span(_cropped(text, width - 2 - len(line)), "source")]
    yield from _fit([Fact("quiet", (words,)) for words in wording.totals(graph)], _INDENT, "  ", width)
    for text in filter(None, (wording.folding(graph), wording.flow(graph))):
        yield from _fit(_words(text, "quiet"), _INDENT, "  ", width, gap=" ")
    for text in wording.warnings(graph):
        yield from _fit(_words(text, "warning"), [Span("⚠ ", "warning")], "  ", width, gap=" ")
    for text in graph.remarks:
        yield from _fit(_words(text, "quiet"), _INDENT, "  ", width, gap=" ")


def _root(node: Node) -> list[Fact]:
    return [Fact("name", _forms(wording.title(node), 30), 3), Fact("shape", (wording.shapes(node.outputs),))]


def _words(text: str, style: str) -> list[Fact]:
    """A sentence to be broken between any two words but not before a number or its unit."""
    return [Fact(style, (wording.printable(word),)) for word in re.split(r" (?!\d|[kMGT]?B\b)", text)]


def _cropped(text: str, width: int) -> str:
    text = wording.printable(text)
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)) + "…"


# --- the order of the page -------------------------------------------------------------------------------------------


class _TreePage(NamedTuple):
    """What decides where each node stands."""

    #: what each node reads, several edges to the same source together, in input order
    reads: Mapping[int, Mapping[int, tuple[Edge, ...]]]
    #: how many nodes read it
    users: Mapping[int, int]
    #: operations and cuts by the node on whose line they stand, users first
    owned: Mapping[int, Sequence[int]]
    #: how many operations and cuts are below, itself included
    weight: Mapping[int, int]
    position: Mapping[int, int]


def _page(graph: Graph) -> _TreePage:
    reads = {user: _by_source(edges) for user, edges in graph.inputs.items()}
    users: dict[int, list[int]] = {node.id: [] for node in graph.nodes}
    for user, sources in reads.items():
        for source in sources:
            users[source].append(user)
    starts = list(dict.fromkeys((*graph.roots, *(node for node, by in users.items() if not by))))
    order = [node for node in _order(starts, reads, users) if graph.by_id[node].kind not in (Kind.LEAF, Kind.CONSTANT)]
    owner = _owners(order, users, set(starts))
    owned: dict[int, list[int]] = {_ROOT: []}
    for node in order:
        owned.setdefault(owner[node], []).append(node)
    owned[_ROOT] = list(dict.fromkeys((*starts, *owned[_ROOT])))
    weight = dict.fromkeys([_ROOT, *order], 1)
    for node in reversed(order):
        weight[owner[node]] += weight[node]
    return _TreePage(
        reads, {node: len(by) for node, by in users.items()}, owned, weight, {node: i for i, node in enumerate(order)}
    )


def _by_source(edges: Iterable[Edge]) -> Mapping[int, tuple[Edge, ...]]:
    found: dict[int, tuple[Edge, ...]] = {}
    for edge in edges:
        found[edge.source] = (*found.get(edge.source, ()), edge)
    return found


def _order(
    starts: Sequence[int], reads: Mapping[int, Mapping[int, tuple[Edge, ...]]], users: Mapping[int, Sequence[int]]
) -> Iterator[int]:
    """All nodes, users before what they read, staying on one path as long as possible."""
    waiting = {node: len(by) for node, by in users.items()}
    ready = [node for node in reversed(starts) if not waiting[node]]
    while ready:
        user = ready.pop()
        yield user
        for source in reversed(list(reads.get(user, ()))):
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)


def _owners(order: Sequence[int], users: Mapping[int, Sequence[int]], starts: set[int]) -> Mapping[int, int]:
    """The immediate dominator of each node: the last node that every path from the root to it leads through.

    In an acyclic graph one pass is enough: it is where the dominators of the users meet. Jump pointers find that place
    in logarithmic time, so that a loss at each of 100,000 steps costs no more than a chain.
    """
    up, jump, depth = {_ROOT: _ROOT}, {_ROOT: _ROOT}, {_ROOT: 0}

    def meet(a: int, b: int) -> int:
        if depth[a] < depth[b]:
            a, b = b, a
        while depth[a] > depth[b]:
            a = jump[a] if depth[jump[a]] >= depth[b] else up[a]
        while a != b:
            a, b = (jump[a], jump[b]) if jump[a] != jump[b] else (up[a], up[b])
        return a

    for node in order:
        owner = _ROOT if node in starts else users[node][0]
        for user in users[node]:
            owner = meet(owner, user)
        up[node], depth[node] = owner, depth[owner] + 1
        far = jump[owner]
        jump[node] = jump[far] if depth[owner] - depth[far] == depth[far] - depth[jump[far]] else owner
    return up


# --- rows ------------------------------------------------------------------------------------------------------------

#: trail, joint, node, edges, and whether the node stands here if it stands nowhere yet
_Waiting: TypeAlias = tuple[str, str, int, tuple[Edge, ...], bool]


def _rows(graph: Graph, page: _TreePage) -> Iterator[Row]:
    """Every node once in full and every further use as a reference, in the order of the page."""
    shown: set[int] = set()
    waiting: list[_Waiting] = [("", "", node, (), True) for node in reversed(page.owned[_ROOT])]
    while waiting:
        trail, joint, key, edges, here = waiting.pop()
        node = graph.by_id[key]
        row = Row(trail, joint, node, edges, full=here and key not in shown)
        yield row
        if row.full:
            shown.add(key)
            waiting += reversed(_under(row, graph, page))


def _under(row: Row, graph: Graph, page: _TreePage) -> list[_Waiting]:
    """What is below a row: leaves, references, side branches, then its line goes on.

    The references come in an order in which the last of them is the one that stands next on the page.
    """
    reads = page.reads.get(row.node.id, {})
    own = {source: page.weight[source] for source in page.owned.get(row.node.id, ()) if page.users[source] == 1}
    joins = [source for source in page.owned.get(row.node.id, ()) if source not in own]
    heavy = max(own, key=own.__getitem__, default=None)
    if heavy is not None and 2 * own[heavy] <= sum(own.values()):
        heavy = None
    ends = [source for source in reads if graph.by_id[source].kind in (Kind.LEAF, Kind.CONSTANT)]
    branches = [source for source in reads if source in own and source != heavy]
    here = {*ends, *branches}
    references = [source for source in reads if source not in here and source != heavy]
    references.sort(key=page.position.__getitem__, reverse=True)
    hung = (*ends, *references, *branches)
    under: list[_Waiting] = [(row.below, "├", source, reads[source], source in here) for source in hung]
    if heavy is not None:
        under.append((row.below, "", heavy, reads[heavy], True))
    elif under:
        under[-1] = (row.below, "└", *under[-1][2:])
    return under + [(row.below, "", source, (), True) for source in joins]


def _joined(rows: Iterable[Row]) -> Iterator[Row]:
    """Lets a line run on where a reference is followed at once by the node it refers to."""
    held: Row | None = None
    for row in rows:
        if held is not None:
            if row.node is held.node and row.full and (row.trail, row.joint) == (held.trail, ""):
                row = Row(row.trail, "", row.node, held.edges, full=True)
            else:
                yield held
        held = None if row.full or row.joint != "└" else row
        if held is None:
            yield row
    if held is not None:
        yield held


# --- folding ---------------------------------------------------------------------------------------------------------


def _folded(rows: Sequence[Row]) -> Iterator[Row | Fold]:
    """Shows long runs of equal iterations by their first and last one."""
    keys = _likeness(rows)
    following = _next_equal(keys)
    at = 0
    while at < len(rows):
        period, iterations = _run(keys, following, at) if rows[at].full and rows[at].node.kind is Kind.OP else (1, 1)
        if iterations < _FEWEST_ITERATIONS:
            yield rows[at]
            at += 1
            continue
        last = at + (iterations - 1) * period
        yield from rows[at : at + period]
        yield Fold(rows[at].trail, iterations - 2, tuple(rows[at + period : last]))
        yield from rows[last : last + period]
        at = last + period


def _likeness(rows: Sequence[Row]) -> list[int]:
    """A number for each row, equal where the rows differ in nothing but node numbers and values."""
    numbers: dict[object, int] = {}
    of_node: dict[int, object] = {}
    keys = []
    for row in rows:
        node = row.node
        if node.id not in of_node:
            of_node[node.id] = node.id if node.kind is Kind.CUT or wording.faults(node) else _alike(node)
        slots = tuple((edge.input if len(row.edges) > 1 else 0, edge.output) for edge in row.edges)
        keys.append(numbers.setdefault((row.trail, row.joint, row.full, slots, of_node[node.id]), len(numbers)))
    return keys


def _alike(node: Node) -> tuple[object, ...]:
    """What two nodes share that differ in number and value alone."""
    at = node.stack[0].place if node.stack else None
    return node.kind, node.op, node.name, at, node.module, node.outputs, node.saved, node.grad, node.tags, node.box


def _next_equal(keys: Sequence[int]) -> list[int]:
    """For each place the next one with the same key, or -1."""
    seen: dict[int, int] = {}
    found = [-1] * len(keys)
    for at in range(len(keys) - 1, -1, -1):
        found[at] = seen.get(keys[at], -1)
        seen[keys[at]] = at
    return found


def _run(keys: Sequence[int], following: Sequence[int], at: int) -> tuple[int, int]:
    """The period and number of iterations of the repetition that begins at a place; (1, 1) where there is none."""
    other = following[at]
    for _ in range(8):  # one operation may occur several times in a iteration
        if not 0 < other - at <= _LONGEST_TURN:
            break
        end = other
        while end < len(keys) and keys[end] == keys[end - (other - at)]:
            end += 1
        if end - at >= _FEWEST_ITERATIONS * (other - at):
            return other - at, (end - at) // (other - at)
        other = following[other]
    return 1, 1


# --- lines -----------------------------------------------------------------------------------------------------------


def height(graph: Graph) -> int:
    """How many rows the tree of a graph has, without the header."""
    return sum(1 for _ in _folded(list(_joined(_rows(graph, _page(graph))))))


def _tree(graph: Graph, width: int, fold: bool, saved: bool) -> Iterator[Line]:
    rows = list(_joined(_rows(graph, _page(graph))))
    say = _Facts(graph, {row.node.id for row in rows if not row.full}, saved)
    items: Sequence[Row | Fold] = list(_folded(rows)) if fold else rows
    for item, after in zip(items, [*items[1:], None], strict=False):
        if isinstance(item, Fold):
            start = _guides(item.trail, "")
            yield from _fit(say.fold(item), [Span(f"{start}⋮ ", "guide")], f"{start}  ", width, gap=" ")
            continue
        unreached = item.node.id not in say.reached and item.node.kind is not Kind.CUT
        yield from _fit(
            say.row(item),
            [Span(_guides(item.trail, item.joint), "guide"), say.symbol(item)],
            _guides(item.below, "") + ("│   " if _leads_to(item, after) else "    "),
            width,
            suffix=" unreached" if unreached else "",
        )


def _leads_to(row: Row, after: Row | Fold | None) -> bool:
    """Whether the next row hangs on this one, or carries its line on."""
    return isinstance(after, Row) and any(edge.user == row.node.id for edge in after.edges)


def _guides(trail: str, joint: str) -> str:
    """Two characters a level: `│ │ ├─`."""
    return "".join(f"{guide} " for guide in trail) + (f"{joint}─" if joint else "")


_STOP = Fact("quiet", ("no gradient goes further", "gradients stop"))


class _Facts:
    """Says what there is to say about a row, most important first."""

    def __init__(self, graph: Graph, referred: set[int], saved: bool = False) -> None:
        self._graph = graph
        self._bytes = memory.owned(graph.whole or graph) if saved else {}
        self._referred = referred
        self._main = wording.main_file(graph)
        self._device = wording.device(graph)
        self._facts: dict[object, list[Fact]] = {}
        self.reached = wording.reached(graph)

    def symbol(self, row: Row) -> Span:
        node = row.node
        if not row.full:
            return Span("─ ", "guide")
        unreached = node.id not in self.reached
        style = "fault" if node.kind is Kind.CUT or wording.faults(node) else _SYMBOL_STYLES[node.kind]
        return Span(f"{_SYMBOLS[node.kind][unreached]} ", style + " unreached" * unreached)

    def row(self, row: Row) -> list[Fact]:
        facts = self._full(row) if row.full else self._reference(row)
        if len(row.edges) < 2:
            return facts
        return [*facts, Fact("quiet", (f"as inputs {wording.ranges([edge.input for edge in row.edges])}",))]

    def _reference(self, row: Row) -> list[Fact]:
        node = row.node
        title = wording.box_title(node.box) if node.box is not None else ""
        name = Fact("quiet", _forms(node.name or title or node.op, 20), 2)
        rest = [name, Fact("quiet", (wording.outputs_used(node, row.edges),))]
        return [Fact("number", (f"see #{node.id}",)), *(fact for fact in rest if fact.forms[0])]

    def _full(self, row: Row) -> list[Fact]:
        node = row.node
        here = self._graph.uses.get(node.id, 0) == len(row.edges)
        key = (
            _alike(node),
            node.value,
            node.gradient,
            self._bytes.get(node.id),
            here,
            tuple(edge.output for edge in row.edges),
        )
        if key not in self._facts:
            self._facts[key] = [fact for fact in self._about(row, here) if fact.forms[0]]
        number = [Fact("number", (f"#{node.id}",))] if node.id in self._referred else []
        return number + self._facts[key]

    def _about(self, row: Row, here: bool) -> list[Fact]:
        node = row.node
        name = Fact("leaf" if node.kind is Kind.LEAF else "name", _forms(wording.assignment(node), 20), 4)
        if node.kind is Kind.CUT:
            return self._cut(node, name)
        if node.box is not None:
            return [name, *self._box(node, node.box)]
        return [name, *(self._operation(row, here) if node.kind is Kind.OP else self._end(node))]

    def _box(self, node: Node, box: Box) -> list[Fact]:
        title = wording.printable(wording.box_title(box))
        at = wording.place(node.stack[0], self._main) if node.stack else ""
        return [
            Fact("box", (title, wording.elide_head(title, 28)), 2),
            Fact("op", (node.op, wording.elide(node.op, 16)), 1),
            Fact("box", (wording.times(box).strip(),)),
            *_gradient(node),
            Fact("shape", (wording.shapes(node.outputs, self._device),), 2),
            *self._marks(node),
            Fact("place", _forms(at, 24), 3),
            Fact("quiet", wording.box_facts(box), 5),
        ]

    def _end(self, node: Node) -> list[Fact]:
        role = "constant" if node.kind is Kind.CONSTANT else f"leaf, grad {node.grad}" if node.grad else "leaf"
        shape = wording.shapes(node.outputs, self._device)
        return [Fact("shape", (shape,)), Fact("quiet", (role,)), *_gradient(node), *self._marks(node)]

    def _cut(self, node: Node, name: Fact) -> list[Fact]:
        at = f" at {wording.place(node.stack[0])}" if node.stack else ""
        what = Fact("fault", (wording.printable(node.op + at),))
        return [what, name, Fact("shape", (wording.shapes(node.outputs, self._device),)), *self._marks(node), _STOP]

    def _operation(self, row: Row, here: bool) -> list[Fact]:
        """`here`: it is read nowhere else, so that only the outputs read here matter."""
        node = row.node
        at = wording.place(node.stack[0], self._main) if node.stack else ""
        used = {edge.output for edge in row.edges}
        shown = [fact for i, fact in enumerate(node.outputs) if i in used] if here and len(used) == 1 else node.outputs
        module = tuple(f"in {elided}" for elided in _forms(node.module, 16)) if node.module else ("",)
        held = self._bytes.get(node.id)
        return [
            Fact("op", _forms(node.op, 30), 5),
            *_gradient(node),
            Fact("number", ("" if held is None else f"{wording.size(held)} saved",)),
            Fact("shape", (wording.shapes(shown, self._device),)),
            Fact("quiet", (wording.outputs_used(node, row.edges),)),
            *self._marks(node),
            Fact("place", _forms(at, 24), 3),
            Fact("quiet", module, 1),
            Fact("quiet", _saves(node, self._device), 0),
        ]

    def _marks(self, node: Node) -> list[Fact]:
        tags = ", ".join(wording.tags(node))
        faults = [Fact("fault", (fault,)) for fault in wording.faults(node)]
        return [*faults, Fact("tag", (f"({tags})",))] if tags else faults

    def fold(self, item: Fold) -> list[Fact]:
        full = [row.node for row in item.rows if row.full]
        ops = [node for node in full if node.kind is Kind.OP]
        one = len(ops) // item.iterations
        sites = [node.stack[0] for node in ops[:one] if node.stack]
        at = f" ({wording.places(sites, self._main)})" if sites else ""
        held = sum(saved.bytes for node in full for saved in node.saved if saved.state is SavedState.HELD)
        ids = [node.id for node in full]
        what = "of this operation" if one == 1 else f"of these {one} operations"
        text = f"{item.iterations:,} more {what}{at}: {wording.count(len(ids), 'node')} from #{min(ids)} to #{max(ids)}"
        return _words(text + (f", {wording.size(held)} saved" if held else ""), "quiet")


def _gradient(node: Node) -> list[Fact]:
    if node.gradient is None:
        return []
    return [Fact(f"level {wording.level(node.gradient)}", wording.gradient(node.gradient, bar=True), 4)]


def _saves(node: Node, device: str) -> tuple[str, ...]:
    held = [item for item in node.saved if item.state is SavedState.HELD]
    if not held:
        return ("",)
    names = ", ".join(item.name for item in held)
    return wording.saves(held, device), f"saves {names}", f"saves {wording.count(len(held), 'tensor')}"


def _forms(text: str, short: int) -> tuple[str, ...]:
    text = wording.printable(text)
    return (text,) if len(text) <= short else (text, wording.elide(text, 2 * short), wording.elide(text, short))


def _fit(
    facts: Sequence[Fact], first: Line, rest: str, width: int, gap: str = "  ", suffix: str = ""
) -> Iterator[Line]:
    """Facts as one line, the least important shortened until they fit; more lines only where that fails."""
    space = max(width - sum(cell_len(span.text) for span in first), _LEAST_ROOM)
    texts = _texts(facts, space, gap)
    line, used = [*first], 0
    for fact, text in zip(facts, texts, strict=True):
        cells = cell_len(text) + len(gap)
        if used and used + cells > space:
            yield line
            line, used, space = [Span(rest, "guide")], 0, max(width - cell_len(rest), _LEAST_ROOM)
        line.append(Span(gap + text if used else text, fact.style + suffix if fact.style else ""))
        used += cells if used else cells - len(gap)
    yield line


def _texts(facts: Sequence[Fact], space: int, gap: str) -> list[str]:
    """The form of each fact: the longest that fit together, or where not even the shortest do, the middle ones."""
    texts = [fact.forms[0] for fact in facts]
    excess = cell_len(gap.join(texts)) - space
    if excess <= 0:
        return texts
    steps = sorted((step, fact.rank, i) for i, fact in enumerate(facts) for step in range(1, len(fact.forms)))
    for step, _, i in steps:
        if excess <= 0:
            break
        excess -= cell_len(texts[i]) - cell_len(facts[i].forms[step])
        texts[i] = facts[i].forms[step]
    return texts if excess <= 0 else [fact.forms[:2][-1] for fact in facts]
