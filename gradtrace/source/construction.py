"""Finds in the user's source the line that constructed a module which another module, or a variable, holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.model.site import Held, Site
from gradtrace.source import syntax


def construction(held: Held) -> Site | None:
    """Where the module was constructed, if the source says so without doubt."""
    parts = held.expression.split(".")
    assigned = list(_assigned(held))
    for length in range(len(parts), 0, -1):
        values = [value for target, value in assigned if target == ".".join(parts[:length])]
        if values:
            found = _part(values[0], parts[length:]) if len(values) == 1 else None
            return Site(held.path, found.lineno, held.kind, found.col_offset) if found else None
    return None


def _assigned(held: Held) -> Iterator[tuple[str, ast.expr]]:
    nodes = [node for node, _ in syntax.functions(held.path)]
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == held.kind]
    for node in (inner for kind in kinds for inner in ast.walk(kind)) if held.kind else nodes:
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), node.value) for target in node.targets)


def _part(value: ast.expr, indices: list[str]) -> ast.Call | None:
    """The call that made the element: of `nn.Sequential(a, b)` or `nn.ModuleList([a, b])`."""
    for index in indices:
        items = value.args if isinstance(value, ast.Call) else []
        if len(items) == 1 and isinstance(items[0], ast.List):
            items = items[0].elts
        if not index.isdigit() or int(index) >= len(items) or any(isinstance(item, ast.Starred) for item in items):
            return None
        value = items[int(index)]
    return value if isinstance(value, ast.Call) else None
