"""Conditions by which a script turns a part of its training off: a flag, or a threshold that has a name.

To detach where `self.frozen` says so, or once `epoch >= freeze_after`, is a stage that someone planned. A condition on data,
or on a counter and a number, may hold by accident.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.model.site import Site, Stack
from gradtrace.source.syntax import FUNCTIONS, ancestor, called, own_nodes, statement

_NAMED = (ast.Name, ast.Attribute, ast.Subscript)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def switch_before(cut: Stack, backward: Stack) -> str:
    """The condition, as the user wrote it, under which the frames of `cut` ran though those of `backward` run without
    it; empty where there is none, or none that is a switch."""
    functions = {(site.path, site.function): site.line for site in backward}
    for site in cut:
        line = functions.get((site.path, site.function))
        for test in _conditions(site, line):
            if _is_switch(test):
                return ast.unparse(test)
        if line is not None:
            return ""
    return ""


def _conditions(site: Site, apart_from: int | None) -> Iterator[ast.expr]:
    """The conditions around a statement in its function, except those that hold for another line as well."""
    found = statement(site.path, site.line, site.column)
    if found is None:
        return
    yield from (node.test for node in own_nodes(found) if isinstance(node, ast.IfExp) and _spans(node, site))
    around = (ast.If, ast.With, *FUNCTIONS)
    at: ast.AST | None = found
    while at is not None and not isinstance(at, FUNCTIONS):
        if isinstance(at, (ast.If, ast.With)) and not _holds(at, apart_from):
            yield from [at.test] if isinstance(at, ast.If) else _grad_modes(at)
        at = ancestor(site.path, at, around)


def _holds(block: ast.If | ast.With, line: int | None) -> bool:
    return line is not None and block.lineno <= line <= (block.end_lineno or block.lineno)


def _spans(node: ast.IfExp, site: Site) -> bool:
    if site.column is None:
        return True
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (site.line, site.column) < end


def _grad_modes(block: ast.With) -> list[ast.expr]:
    """What `with torch.set_grad_enabled(...)` is passed."""
    calls = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    return [call.args[0] for call in calls if called(call) == "set_grad_enabled" and call.args]


def _is_switch(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_switch(test.operand)
    if isinstance(test, ast.BoolOp):
        return any(_is_switch(one) for one in test.values)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        return all(isinstance(one, _ORDER) for one in test.ops) and all(isinstance(one, _NAMED) for one in sides)
    # the mode of a module is set by train() and eval(), often for another reason
    return isinstance(test, _NAMED) and getattr(test, "attr", "") != "training"
