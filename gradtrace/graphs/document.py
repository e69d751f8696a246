"""Graphs as one JSON document, for programs and for later: `gradtrace show -o graph.json` writes it, `gradtrace show
graph.json` and `gradtrace dot graph.json` read it back and print what they would have printed from the script.

The document, version 1 (a higher number means that fields have changed their meaning; new ones may come at any time):

    {"format": "gradtrace.graphs", "version": 1, "script": "train.py", "torch": "2.13.0",
     "graphs": [{...}], "sites": [{...}]}

`sites` are places in the source: `path` (as typed from where gradtrace ran), `line`, `column`, `end_line`, `end_column`
(from 1, columns null where unknown), `function`, `in_module_call` (whether the frame is the `forward` of a module) and
`text`, the line itself. A `stack`, innermost frame first, lists places of `sites` by index, from 0.

A graph has
    request     "backward", "grad", "now" for a tensor looked at, or "" for one that remained at the end; with `stack`, `retain_graph`,
                `create_graph`
    roots       ids of the tensors' nodes
    nodes       in the order in which a walk from the roots meets them: `id` (from 1), `kind` ("op", "leaf", "constant",
                "cut"), `op` (`AddBackward0`; what cut the path), `name`, `value`, `outputs` (`shape`, `dtype`, `device`
                each), `stack`, `module`, `call` (see calls), `made` (rank in the order of creation, from 1), `grad`
                (of a leaf, before the call: "None", "zero" or "accumulated"), `tags`, `gradient` (with --grad: `norm`,
                `mean` and the shares `zeros` and `nonfinite`; "nan" and "inf" where it is no number), and `saved`: of
                each tensor `name`, `tensor`, `bytes`, `state` ("held", "freed", "modified"), `storage` (equal numbers
                share memory), `storage_bytes`, `parameter`
    edges       node `user` read output number `output` of node `source` as its input number `input` (from 0)
    calls       of modules: `number` (from 1, in order), `path`, `kind` (the class), `inside` (number of the outer call)
    absent      names of the script's parameters that no way leads to
    remarks     for people

What has its default (null, 0, false, empty) is left out of nodes, edges, saved tensors and sites.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import PurePath
from typing import Any, TypeVar

from gradtrace.errors import DocumentError
from gradtrace.model.graph import Call, Edge, Gradient, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Site, Stack
from gradtrace.source import base_directory, syntax

FORMAT, VERSION = "gradtrace.graphs", 1
_NONE = object()
_COLUMNS = ("column", "end_column")

T = TypeVar("T")

# --- writing ---------------------------------------------------------------------------------------------------------


def written(graphs: Iterable[Graph], script: str = "", torch: str = "") -> str:
    """The document as text in ASCII alone, so that no stream can refuse it."""
    sites = _Sites()
    document = {
        "format": FORMAT,
        "version": VERSION,
        "script": script,
        "torch": torch,
        "graphs": [_graph(graph, sites) for graph in graphs],
        "sites": sites.plain(),
    }
    return _lines(document)


def _lines(document: Mapping[str, Any]) -> str:
    """One node, edge, call or site a line: short enough, and good to compare."""

    def shown(value: Any, depth: int) -> str:
        inner = "\n" + " " * (depth + 1)
        if isinstance(value, dict) and depth < 4:
            rows = [f"{json.dumps(key)}: {shown(one, depth + 1)}" for key, one in value.items()]
            return "{" + inner + f",{inner}".join(rows) + inner[:-1] + "}"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            nested = depth + 1 if "nodes" in value[0] else 4
            return "[" + inner + f",{inner}".join(shown(one, nested) for one in value) + inner[:-1] + "]"
        return json.dumps(value)

    return shown(document, 0) + "\n"


class _Sites:
    """The places met so far, numbered."""

    def __init__(self) -> None:
        self._numbers: dict[Site, int] = {}

    def numbers(self, stack: Stack) -> list[int]:
        return [self._numbers.setdefault(site, len(self._numbers)) for site in stack]

    def plain(self) -> list[dict[str, Any]]:
        return [self._site(site) for site in self._numbers]

    @staticmethod
    def _site(site: Site) -> dict[str, Any]:
        columns = {name: at + 1 for name in _COLUMNS if (at := getattr(site, name)) is not None}
        return site.plain() | columns | {"path": _typed(site.path), "text": syntax.line_text(site.path, site.line)}


def _graph(graph: Graph, sites: _Sites) -> dict[str, Any]:
    return {
        "request": graph.request,
        "stack": sites.numbers(graph.stack),
        "retain_graph": graph.retain_graph,
        "create_graph": graph.create_graph,
        "roots": list(graph.roots),
        "nodes": [_node(node, sites) for node in graph.nodes],
        "edges": [_plain(edge) for edge in graph.edges],
        "calls": [_plain(call) for call in graph.calls],
        "absent": list(graph.absent),
        "remarks": list(graph.remarks),
    }


def _node(node: Node, sites: _Sites) -> dict[str, Any]:
    plain = _plain(node)
    return plain | {"stack": sites.numbers(node.stack)} if node.stack else plain


def _plain(value: Any) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    kind: Any = type(value)
    return {
        name: _value(held) for name, default in _defaults(kind).items() if (held := getattr(value, name)) != default
    }


@cache
def _defaults(kind: Any) -> Mapping[str, Any]:
    """The default of each field, `_NONE` where it has none."""
    return {name: kind._field_defaults.get(name, _NONE) for name in kind._fields}


def _value(value: Any) -> Any:
    if isinstance(value, (TensorFact, Saved, Gradient)):
        return _plain(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def _typed(path: str) -> str:
    """Relative where it lies below the directory of the command, with slashes."""
    if path.startswith("<"):
        return path
    here = base_directory.directory()
    relative = os.path.relpath(path, here) if os.path.splitdrive(path)[0] == os.path.splitdrive(here)[0] else path
    return PurePath(path if relative.startswith("..") else relative).as_posix()


# --- reading ---------------------------------------------------------------------------------------------------------


def read(text: str, name: str) -> tuple[Graph, ...]:
    """The graphs of a document, and its source lines for `syntax.line_text`. `name` is its file, for messages.

    Raises `DocumentError` for what is no such document.
    """
    document = _document(text, name)
    try:
        sites = [_read_site(plain) for plain in document["sites"]]
        lines = {site.place: str(plain.get("text", "")) for site, plain in zip(sites, document["sites"], strict=True)}
        graphs = tuple(_read_graph(plain, sites) for plain in document["graphs"])
        _check(graphs)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    syntax.recall(lines)
    return graphs


def _document(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{name} is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DocumentError(f"{name} holds no graphs: write some with `gradtrace show -o graph.json train.py`")
    if document.get("version") != VERSION:
        raise DocumentError(f"{name} is of version {document.get('version')}; this gradtrace reads version {VERSION}")
    return document


def _read_site(plain: Mapping[str, Any]) -> Site:
    values = {
        name: plain.get(name, default) if default is not _NONE else plain[name]
        for name, default in _defaults(Site).items()
    }
    values |= {name: values[name] - 1 for name in _COLUMNS if values[name] is not None}
    path = plain["path"]
    return Site(**{**values, "path": path if path.startswith("<") else os.path.abspath(path)})


def _read_graph(plain: Mapping[str, Any], sites: Sequence[Site]) -> Graph:
    def stack(found: Mapping[str, Any]) -> Stack:
        return tuple(sites[number] for number in found.get("stack", ()))

    return Graph(
        roots=tuple(plain["roots"]),
        nodes=tuple(_read(Node, {**one, "stack": stack(one)}, _NODE) for one in plain["nodes"]),
        edges=tuple(_read(Edge, one) for one in plain["edges"]),
        request=plain["request"],
        stack=stack(plain),
        retain_graph=plain["retain_graph"],
        create_graph=plain["create_graph"],
        remarks=tuple(plain["remarks"]),
        calls=tuple(_read(Call, one) for one in plain["calls"]),
        absent=tuple(plain.get("absent", ())),
    )


def _read(
    kind: Callable[..., T], plain: Mapping[str, Any], make: Mapping[str, Callable[[Any], Any]] | None = None
) -> T:
    """Fields that a newer gradtrace added are passed over."""
    known = [name for name, default in _defaults(kind).items() if name in plain or default is _NONE]
    made = make or {}
    return kind(**{name: made.get(name, _same)(plain[name]) for name in known})


def _same(value: Any) -> Any:
    return value


def _tensor(plain: Mapping[str, Any]) -> TensorFact:
    return _read(TensorFact, {"shape": None, **plain}, {"shape": lambda dims: None if dims is None else tuple(dims)})


def _saved(plain: Mapping[str, Any]) -> Saved:
    return _read(Saved, plain, {"tensor": _tensor, "state": SavedState})


_NODE: Mapping[str, Callable[[Any], Any]] = {
    "gradient": lambda plain: Gradient(*(float(plain[name]) for name in Gradient._fields)),
    "kind": Kind,
    "outputs": lambda many: tuple(map(_tensor, many)),
    "saved": lambda many: tuple(map(_saved, many)),
    "tags": tuple,
}


def _check(graphs: Iterable[Graph]) -> None:
    """Whatever renders a graph relies on this: edges and roots lead to nodes, and no way leads in a circle."""
    for graph in graphs:
        for end in (*graph.roots, *(end for edge in graph.edges for end in (edge.user, edge.source))):
            if end not in graph.by_id:
                raise ValueError(f"there is no node {end}")
        if not graph.is_acyclic:
            raise ValueError("its edges lead in a circle")
