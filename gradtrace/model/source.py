"""Reads the user's source: which statement stands on a line, what it assigns and reads, which loop holds it.

Sources come through `linecache`, so that a script which deleted itself after the start, or came by stdin, is still
read.
Every question has an answer for sources that cannot be read or parsed: None, or nothing.
"""

from __future__ import annotations

import ast
import linecache
import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from gradtrace.model.site import Site

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Index:
    """One parsed file: its statements by line, and each node's parent."""

    def __init__(self, tree: ast.Module) -> None:
        self.parent: dict[ast.AST, ast.AST] = {}
        self.by_line: dict[int, ast.stmt] = {}
        for node in ast.walk(tree):  # breadth first: inner statements overwrite outer ones
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
            if isinstance(node, ast.stmt):
                for line in range(node.lineno, _last_own_line(node) + 1):
                    self.by_line[line] = node


def _last_own_line(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


@lru_cache(maxsize=256)
def _index(path: str) -> _Index | None:
    try:
        return _Index(ast.parse("".join(linecache.getlines(path))))
    except (SyntaxError, ValueError, RecursionError):
        return None


def line_text(path: str, line: int) -> str:
    """The source line without its indentation and line end; empty where it cannot be read."""
    return linecache.getline(path, line).strip()


def statement(path: str, line: int) -> ast.stmt | None:
    """The innermost statement on a line; for a compound statement only its header counts."""
    index = _index(path)
    return index.by_line.get(line) if index else None


def call(site: Site, names: tuple[str, ...]) -> ast.Call | None:
    """The call of one of `names` (`loss.backward(...)`, `grad(...)`) that the frame of `site` was in."""
    found = statement(site.path, site.line)
    calls = [node for node in ast.walk(found) if isinstance(node, ast.Call)] if found else []
    named = [node for node in calls if _called(node) in names]
    exact = [node for node in named if (node.lineno, node.col_offset) == (site.line, site.column)]
    return next(iter(exact or named), None)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def root_of(site: Site) -> str:
    """The user's expression for what `backward` or `grad` was asked of at `site`; empty where it cannot be told."""
    found = call(site, ("backward", "grad"))
    if found is None:
        return ""
    if isinstance(found.func, ast.Attribute) and ast.unparse(found.func.value) not in ("torch.autograd", "autograd"):
        return ast.unparse(found.func.value)
    asked = [*found.args[:1], *(word.value for word in found.keywords if word.arg in ("tensors", "outputs"))]
    return ast.unparse(asked[0]) if asked else ""


def assigned(site: Site) -> tuple[str, ...]:
    """What the statement at `site` assigns to: `("pred", "state")`, `("self.memory",)`."""
    found = statement(site.path, site.line)
    if isinstance(found, ast.Assign):
        targets = found.targets
    elif isinstance(found, (ast.AugAssign, ast.AnnAssign)):
        targets = [found.target]
    else:
        return ()
    return tuple(ast.unparse(leaf) for target in targets for leaf in _leaves(target))


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for part in target.elts for leaf in _leaves(part)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def reads(site: Site) -> frozenset[str]:
    """Names and attributes that the statement at `site` reads: `{"x", "self", "self.memory"}`."""
    found = statement(site.path, site.line)
    if found is None:
        return frozenset()
    loads = (node for node in _own_nodes(found) if isinstance(node, (ast.Name, ast.Attribute)))
    texts = {ast.unparse(node) for node in loads if isinstance(node.ctx, ast.Load)}
    if isinstance(found, ast.AugAssign):
        texts.add(ast.unparse(found.target))
    return frozenset(texts)


def _own_nodes(found: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without those of the statements inside it."""
    nodes, waiting = [], [child for child in ast.iter_child_nodes(found) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return nodes


def state_attributes(path: str) -> frozenset[str]:
    """Names of attributes that some function other than `__init__` assigns: they carry state from call to call."""
    index = _index(path)
    found: set[str] = set()
    for node in index.parent if index else ():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            function = _ancestor(path, node, _FUNCTIONS)
            if getattr(function, "name", "") != "__init__":
                found.add(node.attr)
    return frozenset(found)


def _ancestor(path: str, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
    index = _index(path)
    at = index.parent.get(node) if index else None
    while at is not None and not isinstance(at, kinds) and index:
        at = index.parent.get(at)
    return at


def loop(path: str, line: int) -> Loop | None:
    """The innermost `for` or `while` around the statement on `line`, within the same function."""
    at: ast.AST | None = statement(path, line)
    while at is not None:
        at = _ancestor(path, at, (ast.For, ast.AsyncFor, ast.While, *_FUNCTIONS))
        if isinstance(at, _FUNCTIONS):
            return None
        if isinstance(at, (ast.For, ast.AsyncFor, ast.While)) and _in_body(at, line):
            return at
    return None


def guard(path: str, line: int) -> ast.If | None:
    """The innermost `if` around the statement on `line`, within the same loop."""
    found = statement(path, line)
    at = _ancestor(path, found, (ast.If, ast.For, ast.AsyncFor, ast.While, *_FUNCTIONS)) if found else None
    return at if isinstance(at, ast.If) else None


def _in_body(node: Loop, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)


def in_loop(found: Loop, line: int) -> bool:
    """Whether `line` belongs to the loop's body."""
    return _in_body(found, line)


def kept_at(path: str, holder: str) -> int | None:
    """The line that puts tensors into a holder: `losses.append(loss)`, `total += loss`, `self.ema = 0.9 * self.ema +
    x`.

    `holder` is a name such as `self.rows[]` (`[]` stands for any element); it is looked up by the last name in it that
    is a variable's or an attribute's, since another function calls the object otherwise.
    """
    index = _index(path)
    owner, _, name = re.sub(r"\[.*", "", holder).rpartition(".")
    lines: list[tuple[int, int]] = []
    for node in index.parent if index else ():
        rank = _keeps(node, _Target(name, bool(owner)), "[" in holder)
        if rank:
            lines.append((rank, getattr(node, "lineno", 0)))
    return min(lines)[1] if lines else None


class _Target(NamedTuple):
    """A variable, or an attribute of whatever object."""

    name: str
    attribute: bool


def _keeps(node: ast.AST, name: _Target, container: bool) -> int:
    """How well a node fits the line that adds to `name`: 1 is best, 0 not at all."""
    if container and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        adds = node.func.attr in ("append", "appendleft", "extend", "add", "insert", "push", "put", "update")
        return int(adds and _ends_with(node.func.value, name))
    if isinstance(node, ast.AugAssign):
        return int(_ends_with(node.target, name))
    if not isinstance(node, ast.Assign):
        return 0
    targets = [leaf for target in node.targets for leaf in _leaves(target)]
    if container and any(isinstance(leaf, ast.Subscript) and _ends_with(leaf, name) for leaf in targets):
        return 1
    if not any(_ends_with(leaf, name) for leaf in targets):
        return 0
    return 2 if any(_ends_with(part, name) for part in ast.walk(node.value) if isinstance(part, ast.expr)) else 3


def _ends_with(node: ast.expr, target: _Target) -> bool:
    """Whether an expression is the target, or an element of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return target.name == getattr(node, "attr" if target.attribute else "id", None)


def call_of(path: str, method: str) -> int | None:
    """The first line on which a method of this name is called."""
    index = _index(path)
    calls = (node for node in (index.parent if index else ()) if isinstance(node, ast.Call))
    return min((node.lineno for node in calls if _called(node) == method), default=None)
