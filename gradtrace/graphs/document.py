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
    absent      names of the script's parameters that no path leads to
    remarks     for people

What has its default (null, 0, false, empty) is left out of nodes, edges, saved tensors and sites.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import PurePath
from typing import Any

from gradtrace.errors import DocumentError
from gradtrace.escapes import whole_characters
from gradtrace.model.graph import Box, Gradient, Graph, Kind, Node, Saved, TensorFact
from gradtrace.model.schema import DamagedError, Reader, checked_site, parsed
from gradtrace.model.site import Site, Stack
from gradtrace.source import base_directory, syntax, texts

FORMAT, VERSION = "gradtrace.graphs", 1
_NONE = object()
_COLUMNS = ("column", "end_column")

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

    return whole_characters(shown(document, 0)) + "\n"


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
    """The graphs of a document, and its source lines for `texts.line`. `name` is its file, for messages.

    Raises `DocumentError` for what is no such document.
    """
    document = _document(text, name)
    try:
        return _GraphDocument(document).graphs()
    except DamagedError as error:
        raise DocumentError(f"{name} is damaged: {error}; write it again") from None


def _document(text: str, name: str) -> dict[str, Any]:
    try:
        document = parsed(text)
    except DamagedError as error:
        raise DocumentError(f"{name} is damaged: {error}; write it again") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DocumentError(f"{name} holds no graphs: write some with `gradtrace show -o graph.json train.py`")
    if document.get("version") != VERSION:
        raise DocumentError(f"{name} is of another version; this gradtrace reads version {VERSION}: write it again")
    return document


class _GraphDocument:
    """The graphs of one document. Sites come first: stacks name them by number."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._sites: list[Site] = []
        self._reader = Reader({Stack: self._stack, Box | None: _unfolded, Graph | None: _unfolded})

    def graphs(self) -> tuple[Graph, ...]:
        """All of them. Raises `DamagedError`."""
        lines: dict[tuple[str, int], str] = {}
        for at, plain in enumerate(_list(self._document, "sites")):
            try:
                site = self._site(plain)
                lines[site.place] = self._reader.read(str, plain.get("text", ""))
            except DamagedError as error:
                raise error.inside(f"sites[{at}]") from None
            self._sites.append(site)
        found = []
        for at, plain in enumerate(_list(self._document, "graphs")):
            try:
                graph: Graph = self._reader.read(Graph, plain)
                _check(graph)
            except DamagedError as error:
                raise error.inside(f"graphs[{at}]") from None
            found.append(graph)
        texts.recall(lines)
        return tuple(found)

    def _site(self, plain: Any) -> Site:
        """Columns count from 1 in a document, and paths are as typed."""
        site: Site = self._reader.read(Site, plain)
        path = site.path if site.path.startswith("<") else os.path.abspath(site.path)
        columns = {name: at - 1 for name in _COLUMNS if (at := getattr(site, name)) is not None}
        return checked_site(site._replace(path=path, **columns))

    def _stack(self, value: Any) -> Stack:
        numbers: tuple[int, ...] = self._reader.read(tuple[int, ...], value)
        for number in numbers:
            if not 0 <= number < len(self._sites):
                raise DamagedError(f"there is no site {number}")
        return tuple(self._sites[number] for number in numbers)


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    if not isinstance(found, list):
        raise DamagedError(f"{key} is missing" if found is None else f"{key} is not a list")
    return found


def _unfolded(value: Any) -> None:
    if value is not None:
        raise DamagedError("a document holds no folded graphs")


def _check(graph: Graph) -> None:
    """Whatever renders a graph relies on this: edges and roots lead to nodes, and no path leads in a circle."""
    if len(graph.by_id) < len(graph.nodes):
        raise DamagedError("two nodes have the same id", "nodes")
    if any(node.kind is Kind.BOX for node in graph.nodes):
        raise DamagedError("a document holds no folded graphs", "nodes")
    for end in (*graph.roots, *(end for edge in graph.edges for end in (edge.user, edge.source))):
        if end not in graph.by_id:
            raise DamagedError(f"there is no node {end}")
    if not graph.is_acyclic:
        raise DamagedError("its edges lead in a circle")
    _check_calls(graph)


def _check_calls(graph: Graph) -> None:
    """A call ran inside an earlier one."""
    for call in graph.calls:
        if call.inside and not (call.inside in graph.call and call.inside < call.number):
            raise DamagedError(f"call {call.number} is inside of call {call.inside}", "calls")
    for node in graph.nodes:
        if node.call and node.call not in graph.call:
            raise DamagedError(f"there is no call {node.call}", "nodes")
