"""What differs between two graphs: nodes are matched by operation, module and the text of their source line, so that
lines which only moved are no difference.

Equal operations that only read something else are shown as such; that a cut, a frozen leaf or a new operation is
where another thing was before is shown once, at the node that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from gradtrace.graphs.parts import is_freed, is_modified
from gradtrace.model.graph import Edge, Graph, Kind, Node, TensorFact
from gradtrace.model.site import Site
from gradtrace.source.syntax import line_text


@dataclass(frozen=True, slots=True)
class Version:
    """The graphs of one run and the texts of their source lines, which another run may have at the same places."""

    name: str
    graphs: tuple[Graph, ...]
    texts: Mapping[tuple[str, int], str]

    def text(self, node: Node) -> str:
        return self.texts.get(node.stack[0].place, "") if node.stack else ""


def version(name: str, graphs: Iterable[Graph]) -> Version:
    """Reads the texts now, before another version brings its own."""
    found = tuple(graphs)
    places = {
        site.place
        for graph in found
        for stack in (graph.stack, *(one.stack for one in graph.nodes))
        for site in stack[:1]
    }
    return Version(name, found, {place: line_text(*place) for place in places})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `sign` is "+" for what is new, "-" for what is gone, "~" for what is not the same."""

    sign: str
    module: str
    text: str
    #: where it is, in the new version or else in the old one, and the source there
    site: Site | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two graphs that belong together, or one that has no partner, and how they differ."""

    before: Graph | None
    after: Graph | None
    changes: tuple[Change, ...] = field(default=())

    @property
    def equal(self) -> bool:
        return self.before is not None and self.after is not None and not self.changes


def compared(before: Version, after: Version) -> list[Compared]:
    """The graphs of two versions side by side, in order."""
    pairs = _aligned(before.graphs, after.graphs, [_graph_key(before), _graph_key(after)])
    return [
        Compared(old, new, tuple(_Pair(old, new, before, after).changes()) if old and new else ()) for old, new in pairs
    ]


def _graph_key(version: Version) -> Callable[[Graph], object]:
    def key(graph: Graph) -> object:
        place = version.texts.get(graph.stack[0].place, "") if graph.stack else ""
        return graph.request, place, tuple(graph.by_id[root].name for root in graph.roots)

    return key


def _aligned(
    old: Sequence[Graph], new: Sequence[Graph], keys: Sequence[Callable[[Graph], object]]
) -> Iterator[tuple[Graph | None, Graph | None]]:
    matcher = SequenceMatcher(None, [keys[0](one) for one in old], [keys[1](one) for one in new], autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        yield from zip_longest(old[a:b], new[c:d])


# --- one pair of graphs ----------------------------------------------------------------------------------------------


class _Pair:
    """Two graphs, and which node of the one is which of the other."""

    def __init__(self, old: Graph, new: Graph, before: Version, after: Version) -> None:
        self._old, self._new = old, new
        self._before, self._after = before, after
        self._match: dict[int, int] = {}
        first, second = _operations(old), _operations(new)
        rest = _matched(first, second, self._match, lambda one, side: (one.op, one.module, self._text(one, side)))
        # what is left between the same neighbours: first by operation and module, then by line
        self._changed: list[tuple[Node, Node]] = []
        for some, others in rest:
            again = _matched(some, others, self._match, lambda one, _: (one.op, one.module))
            for few, fewer in again:
                same = [(a, b) for a, b in zip(few, fewer, strict=False) if a.module == b.module]
                self._changed += same if len(few) == len(fewer) else []
        self._match |= {a.id: b.id for a, b in self._changed}

    def _text(self, node: Node, side: int) -> str:
        return (self._before, self._after)[side].text(node)

    def changes(self) -> Iterator[Change]:
        """From the loss down; a module that is gone or new as a whole is shown in one."""
        found = list(self._single())
        for sign, graph, other in (("-", self._old, self._new), ("+", self._new, self._old)):
            known = {call.path for call in other.calls}
            missing = {call.path: call.kind for call in graph.calls if call.path and call.path not in known}
            outermost = [path for path in missing if not any(_is_in(path, one) for one in missing if one != path)]
            for path in outermost:
                inside = [one for one in found if one.sign == sign and _is_in(one.module, path)]
                found = [one for one in found if one not in inside]
                yield _whole(sign, path, missing[path], inside)
        yield from found

    def _single(self) -> Iterator[Change]:
        yield from self._request()
        back = {new: old for old, new in self._match.items()}
        for node in self._old.nodes:
            if node.kind is Kind.OP and node.id not in self._match:
                yield _change("-", node, node.op, self._before)
        for node in self._new.nodes:
            if node.kind is Kind.OP and node.id not in back:
                yield _change("+", node, f"{node.op}  {_shapes(node.outputs)}".rstrip(), self._after)
            elif node.kind is Kind.OP:
                yield from self._between(self._old.by_id[back[node.id]], node)
        yield from self._leaves()

    def _request(self) -> Iterator[Change]:
        for name in ("request", "retain_graph", "create_graph"):
            old, new = getattr(self._old, name), getattr(self._new, name)
            if old != new:
                yield Change("~", "", f"{name}: {old} → {new}", self._new.stack[0] if self._new.stack else None)

    def _between(self, old: Node, new: Node) -> Iterator[Change]:
        if old.op != new.op:
            yield _change("~", new, f"{old.op} → {new.op}", self._after)
        if _shapes(old.outputs) != _shapes(new.outputs):
            yield _change("~", new, f"{new.op}: {_shapes(old.outputs)} → {_shapes(new.outputs)}", self._after)
        for word, holds in (("already freed", is_freed), ("modified in place", is_modified)):
            if holds(old) != holds(new):
                yield _change("~", new, f"{new.op}: {'' if holds(new) else 'no longer '}{word}", self._after)
        tags = [f"+{tag}" for tag in new.tags if tag not in old.tags] + [
            f"-{tag}" for tag in old.tags if tag not in new.tags
        ]
        special = [tag for tag in tags if tag[1:] in ("in-place", "hook", "checkpoint", "custom Function")]
        if special:
            yield _change("~", new, f"{new.op}: {', '.join(special)}", self._after)
        yield from self._inputs(old, new)

    def _inputs(self, old: Node, new: Node) -> Iterator[Change]:
        was = {edge.input: edge for edge in self._old.inputs.get(old.id, ())}
        now = {edge.input: edge for edge in self._new.inputs.get(new.id, ())}
        for number in sorted({*was, *now}):
            text = self._rewired(was.get(number), now.get(number))
            if text:
                yield _change("~", new, f"{new.op}: input {number} {text}", self._after)

    def _rewired(self, was: Edge | None, now: Edge | None) -> str:
        old = None if was is None else self._old.by_id[was.source]
        new = None if now is None else self._new.by_id[now.source]
        cut = _cut(old, new)
        if cut:
            return cut
        if old is None or new is None or was is None or now is None:
            return ""  # of constants not every one is known
        kinds = {old.kind, new.kind}
        if kinds == {Kind.LEAF, Kind.CONSTANT}:
            return f"{_name(new)} {'requires' if new.kind is Kind.LEAF else 'no longer requires'} grad"
        if kinds == {Kind.OP}:
            moved = old.id in self._match and new.id in self._match.values()
            differs = self._match.get(old.id) != new.id or was.output != now.output
        elif kinds == {Kind.LEAF}:
            moved, differs = True, old.name != new.name
        elif Kind.CONSTANT in kinds and Kind.OP not in kinds:
            return ""
        else:
            return _other(old, new)
        return f"reads {_name(new)} instead of {_name(old)}" if moved and differs else ""

    def _leaves(self) -> Iterator[Change]:
        old, new = _named(self._old), _named(self._new)
        for name in (name for name in old if name not in new):
            yield Change("-", _holder(name), f"leaf {name}  {_shapes(old[name].outputs)}: no gradient reaches it")
        for name in (name for name in new if name not in old):
            yield Change("+", _holder(name), f"leaf {name}  {_shapes(new[name].outputs)}")
        for name in (name for name in old if name in new):
            if old[name].outputs != new[name].outputs:
                yield Change(
                    "~", _holder(name), f"leaf {name}: {_shapes(old[name].outputs)} → {_shapes(new[name].outputs)}"
                )


def _operations(graph: Graph) -> list[Node]:
    """In the order in which they were made."""
    found = [graph.by_id[number] for number in reversed(graph.order) if graph.by_id[number].kind is Kind.OP]
    return sorted(found, key=lambda node: node.made)


def _matched(
    old: Sequence[Node], new: Sequence[Node], match: dict[int, int], key: Callable[[Node, int], object]
) -> list[tuple[Sequence[Node], Sequence[Node]]]:
    """Matches nodes with equal keys in order; returns the stretches between them that are left."""
    keys = [key(one, 0) for one in old], [key(one, 1) for one in new]
    rest = []
    for what, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if what == "equal":
            match |= {one.id: other.id for one, other in zip(old[a:b], new[c:d], strict=True)}
        else:
            rest.append((old[a:b], new[c:d]))
    return rest


def _change(sign: str, node: Node, text: str, version: Version) -> Change:
    return Change(sign, node.module, text, node.stack[0] if node.stack else None, version.text(node))


def _is_in(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _whole(sign: str, path: str, kind: str, changes: Sequence[Change]) -> Change:
    """All changes of a module as one."""
    leaves = sum(one.text.startswith("leaf ") for one in changes)
    operations = len(changes) - leaves
    parts = [f"{operations:,} operation{'s' * (operations != 1)}"] * bool(operations)
    parts += [f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}"] * bool(leaves)
    counted = " and ".join(parts)
    first = next((one for one in changes if one.site), None)
    site, source = (first.site, first.source) if first is not None else (None, "")
    text = f"{path}  {kind}: {counted} {'gone' if sign == '-' else 'more'}"
    return Change(sign, path.rpartition(".")[0], text, site, source)


def _shapes(facts: Iterable[TensorFact]) -> str:
    return ", ".join(map(_shape, facts))


def _shape(fact: TensorFact) -> str:
    dims = "scalar" if fact.shape == () else str(list(fact.shape or ()))
    return dims if fact.dtype in (None, "float32") else f"{dims} {fact.dtype}"


def _name(node: Node) -> str:
    return node.name or node.op or f"a {node.kind.value}"


def _cut(old: Node | None, new: Node | None) -> str:
    """What became of a cut between two inputs; empty where none came or went."""
    was = old is not None and old.kind is Kind.CUT
    now = new is not None and new.kind is Kind.CUT
    if new is not None and now and not was:
        return f"is cut by {new.op}"
    if old is not None and was and not now:
        return f"is no longer cut by {old.op}"
    return ""


def _other(old: Node, new: Node) -> str:
    return (
        f"reads {_name(new)} ({new.kind.value}) instead of {_name(old)} ({old.kind.value})"
        if old.kind is not new.kind
        else ""
    )


def _named(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes if node.kind is Kind.LEAF and node.name}


def _holder(name: str) -> str:
    return name.rpartition(".")[0]
