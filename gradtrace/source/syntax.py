"""The user's files, parsed: the statements, loops, functions, calls and texts on their lines.

Every question has an answer for sources that cannot be read or parsed: None, or nothing. Columns are characters, in
the nodes too, though Python gives them UTF-8 bytes.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection
from typing import TypeAlias

from gradtrace.model.site import Site
from gradtrace.source import texts

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Index:
    """One parsed file: its statements by line, and each node's parent."""

    def __init__(self, tree: ast.Module) -> None:
        self.parent: dict[ast.AST, ast.AST] = {}
        #: the outer statements before the inner ones
        self.by_line: defaultdict[int, list[ast.stmt]] = defaultdict(list)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
            if isinstance(node, ast.stmt):
                for line in range(node.lineno, _last_own_line(node) + 1):
                    self.by_line[line].append(node)


def _last_own_line(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


@texts.cached(256)
def index_of(path: str) -> Index | None:
    """The parsed file; None where it cannot be read or parsed."""
    source = "".join(texts.lines(path))
    try:
        tree = ast.parse(source)
        if not source.isascii():
            _count_characters(tree, path)
        return Index(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _count_characters(tree: ast.Module, path: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.col_offset = texts.characters(path, node.lineno, node.col_offset) or 0
            node.end_col_offset = texts.characters(path, node.end_lineno or node.lineno, node.end_col_offset)


def all_nodes(path: str) -> Collection[ast.AST]:
    """Every node of a file except the module itself; none where it cannot be parsed."""
    index = index_of(path)
    return () if index is None else index.parent.keys()


def line_text(path: str, line: int) -> str:
    """The source line without its indentation and line end; empty where it cannot be read."""
    return texts.line(path, line).strip()


def statement(path: str, line: int, column: int | None = None) -> ast.stmt | None:
    """The innermost statement on a line, of several the one at `column`; for a compound statement only its header
    counts."""
    index = index_of(path)
    if index is None:
        return None
    found = index.by_line.get(line, [])
    if column is not None:
        found = [one for one in found if _spans(one, line, column)] or found
    return found[-1] if found else None


def _spans(node: ast.stmt, line: int, column: int) -> bool:
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (line, column) < end


def text_of(path: str, line: int) -> str:
    """The source of the statement on a line, of a compound one its head, without the indentation of its first line."""
    found = statement(path, line)
    first, last = (found.lineno, _last_own_line(found)) if found is not None else (line, line)
    lines = [texts.line(path, number).rstrip() for number in range(first, last + 1)]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(text[indent:] if not text[:indent].strip() else text for text in lines).rstrip()


def loops_around(path: str, line: int) -> list[Loop]:
    """The loops to whose head or body the statement on a line belongs, within the same function, outermost first."""
    found: list[Loop] = []
    at: ast.AST | None = statement(path, line)
    while at is not None and not isinstance(at, FUNCTIONS):
        if isinstance(at, LOOPS) and (at.lineno == line or _in_body(at, line)):
            found.insert(0, at)
        at = ancestor(path, at, (*LOOPS, *FUNCTIONS))
    return found


def call(site: Site, names: tuple[str, ...]) -> ast.Call | None:
    """The call of one of `names` (`loss.backward(...)`, `grad(...)`) that the frame of `site` was in."""
    found = statement(site.path, site.line, site.column)
    calls = [node for node in ast.walk(found) if isinstance(node, ast.Call)] if found else []
    named = [node for node in calls if called(node) in names]
    exact = [node for node in named if (node.lineno, node.col_offset) == (site.line, site.column)]
    return next(iter(exact or named), None)


def call_at(site: Site) -> ast.Call | None:
    """The call that the frame of `site` was in; None where it was in an operator, or where that is not known."""
    found = _expression_at(site, ast.Call)
    return found if isinstance(found, ast.Call) else None


def expression_at(site: Site, longest: int) -> str:
    """The source of the expression that the frame of `site` was in; empty where that is not known, or longer."""
    found = _expression_at(site, ast.expr)
    text = ast.unparse(found) if found is not None else ""
    return text if len(text) <= longest else ""


def subscript_at(site: Site) -> ast.Subscript | None:
    """The `x[...]` that the frame of `site` was in, if it was in one."""
    found = _expression_at(site, ast.Subscript)
    return found if isinstance(found, ast.Subscript) else None


def _expression_at(site: Site, kind: type[ast.expr]) -> ast.expr | None:
    found = statement(site.path, site.line, site.column)
    wanted = (site.line, site.column, site.end_line, site.end_column)
    for node in ast.walk(found) if found else ():
        if isinstance(node, kind) and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == wanted:
            return node
    return None


def called(node: ast.Call) -> str:
    """The name that is called, without what stands before its last dot."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def leaves(target: ast.expr) -> list[ast.expr]:
    """What an assignment's target gives values to: of `a, (b, *c)` these are `a`, `b` and `c`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for part in target.elts for leaf in leaves(part)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def own_nodes(found: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without those of the statements inside it."""
    nodes, waiting = [], [child for child in ast.iter_child_nodes(found) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return nodes


def opens_loop(site: Site) -> bool:
    """Whether the head of a loop stands at `site`."""
    return isinstance(statement(site.path, site.line, site.column), LOOPS)


def function_statements(site: Site) -> list[ast.stmt]:
    """The statements of the function around `site`, nested ones included; empty at the top of a file."""
    found = statement(site.path, site.line, site.column)
    function = ancestor(site.path, found, FUNCTIONS) if found is not None else None
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt)] if function is not None else []


def ancestor(path: str, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
    """The nearest node of one of these kinds around a node."""
    index = index_of(path)
    at = index.parent.get(node) if index else None
    while at is not None and not isinstance(at, kinds) and index:
        at = index.parent.get(at)
    return at


@texts.cached(4096)  # needed at every step
def loop(path: str, line: int) -> Loop | None:
    """The innermost `for` or `while` around the statement on `line`, within the same function."""
    at: ast.AST | None = statement(path, line)
    while at is not None:
        at = ancestor(path, at, (*LOOPS, *FUNCTIONS))
        if isinstance(at, FUNCTIONS):
            return None
        if isinstance(at, LOOPS) and _in_body(at, line):
            return at
    return None


def in_comprehension(site: Site) -> bool:
    """Whether the frame of `site` was in a comprehension, which is a loop as well."""
    if site.function.rpartition(".")[2] in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"):
        return True
    found = statement(site.path, site.line, site.column)
    at = (site.line, site.column or 0)
    for node in ast.walk(found) if found is not None and not hasattr(found, "body") else ():
        if isinstance(node, COMPREHENSIONS):
            first, last = (node.elt.lineno, node.elt.col_offset) if hasattr(node, "elt") else (0, 0), node.generators[0]
            if first <= at < (last.target.lineno, last.target.col_offset):
                return True
    return False


def guard(path: str, line: int) -> ast.If | None:
    """The innermost `if` around the statement on `line`, within the same loop."""
    found = statement(path, line)
    at = ancestor(path, found, (ast.If, *LOOPS, *FUNCTIONS)) if found else None
    return at if isinstance(at, ast.If) else None


def _in_body(node: Loop, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)


def in_loop(found: Loop, line: int) -> bool:
    """Whether `line` belongs to the loop's body."""
    return _in_body(found, line)


def functions(path: str) -> list[tuple[ast.AST, str]]:
    """Every node of a file with the name of the function that holds it; empty at the top."""
    holders = ((node, ancestor(path, node, FUNCTIONS)) for node in all_nodes(path))
    return [(node, getattr(holder, "name", "")) for node, holder in holders]


def function_at(path: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function whose `def`, or decorator, is on a line."""
    for node in all_nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and line in _heads(node):
            return node
    return None


def function_lines(path: str, line: int) -> tuple[int, int] | None:
    """The first and last line of the function whose `def`, or decorator, is on a line."""
    found = function_at(path, line)
    return None if found is None else (min(_heads(found)), found.end_lineno or found.lineno)


def _heads(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    return [function.lineno, *(decorator.lineno for decorator in function.decorator_list)]


def statements_around(site: Site) -> list[ast.stmt]:
    """The statements of the function around `site`; at the top of a file all of it."""
    index = index_of(site.path)
    return function_statements(site) or ([one for found in index.by_line.values() for one in found] if index else [])


def unread_parameter(path: str, line: int, position: int) -> str:
    """The name of the parameter at a position of the function that is defined on a line, if its body never reads it."""
    function = statement(path, line)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or len(function.args.args) <= position:
        return ""
    name = function.args.args[position].arg
    read = {node.id for found in function.body for node in ast.walk(found) if isinstance(node, ast.Name)}
    return "" if name in read else name
