"""Statements that look like an effect and have none: a result that nothing takes, a method that is not called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.model.site import Site
from gradtrace.source import texts
from gradtrace.source.syntax import FUNCTIONS, LOOPS, all_nodes, ancestor, called, leaves, loop, statement

#: contexts that change nothing unless a `with` or a decorator enters them
_CONTEXTS = ("no_grad", "inference_mode", "enable_grad")
#: methods whose name alone does nothing
_METHODS = ("backward", "eval", "train", "detach", "detach_", "requires_grad_")


def discarded_call(site: Site, method: str) -> str:
    """The expression `x.method()` if it is the whole statement at `site`, so that nothing takes its result; else empty."""
    found = statement(site.path, site.line, site.column)
    if not isinstance(found, ast.Expr) or not isinstance(found.value, ast.Call):
        return ""
    call = found.value
    if not isinstance(call.func, ast.Attribute) or called(call) != method or _is_for_show(site.path, found, call.func):
        return ""
    return ast.unparse(call)


def is_loop_variable(site: Site, name: str) -> bool:
    """Whether the loop around `site` gives this variable its values: to assign to it changes nothing else."""
    around = loop(site.path, site.line)
    if not isinstance(around, (ast.For, ast.AsyncFor)):
        return False
    return name in {ast.unparse(leaf) for leaf in leaves(around.target)}


def _is_for_show(path: str, found: ast.Expr, method: ast.Attribute) -> bool:
    """Whether the statement stands at the top of a file, outside of loops, and nothing reads its object afterwards: the
    last line of a cell, or one that was pasted from a prompt."""
    if ancestor(path, found, (*LOOPS, *FUNCTIONS)) is not None:
        return False
    owner = ast.dump(method.value)
    reads = [node for node in all_nodes(path) if isinstance(node, ast.expr) and ast.dump(node) == owner]
    return all(node.lineno <= found.lineno and ancestor(path, node, FUNCTIONS) is None for node in reads)


@texts.cached(4096)
def idle_statements(path: str) -> tuple[tuple[int, str], ...]:
    """Lines of a file with a statement that does nothing, and its text: `torch.no_grad()` alone, `loss.backward` without
    parentheses."""
    return tuple(_idle_statements(path))


def _idle_statements(path: str) -> Iterator[tuple[int, str]]:
    for node in all_nodes(path):
        if not isinstance(node, ast.Expr):
            continue
        value = node.value
        context = isinstance(value, ast.Call) and called(value) in _CONTEXTS and _is_of_torch(value.func)
        method = isinstance(value, ast.Attribute) and value.attr in _METHODS
        if context or method:
            yield node.lineno, ast.unparse(value)


def _is_of_torch(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) or ast.unparse(function).startswith("torch.")
