"""Which branch of a class leaves an attribute unused."""

from __future__ import annotations

import ast
from typing import NamedTuple

from gradtrace.source import texts
from gradtrace.source.syntax import FUNCTIONS, all_nodes, ancestor

_CONDITIONS = (ast.If, ast.IfExp, ast.Match, ast.While)


class AttributeUse(NamedTuple):
    """The line of the condition around the uses of an attribute, where all stand under one; and whether it is used."""

    condition: int | None
    used: bool


@texts.cached(256)
def attribute_use(path: str, line: int, attribute: str) -> AttributeUse:
    """How the class that holds a line uses its own attribute `self.<attribute>`, outside of its constructor."""
    owner = _class_at(path, line)
    conditions: list[int | None] = []
    for node in all_nodes(path) if owner is not None else ():
        if not isinstance(node, ast.Attribute) or node.attr != attribute or not isinstance(node.ctx, ast.Load):
            continue
        function = ancestor(path, node, FUNCTIONS)
        if ancestor(path, node, (ast.ClassDef,)) is not owner or getattr(function, "name", "") == "__init__":
            continue
        condition = ancestor(path, node, (*_CONDITIONS, *FUNCTIONS))
        conditions.append(getattr(condition, "lineno", None) if isinstance(condition, _CONDITIONS) else None)
    shared = conditions[0] if conditions and None not in conditions else None
    return AttributeUse(shared, bool(conditions))


def _class_at(path: str, line: int) -> ast.ClassDef | None:
    found = [node for node in all_nodes(path) if isinstance(node, ast.ClassDef)]
    around = [one for one in found if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(around, key=lambda one: one.lineno, default=None)
