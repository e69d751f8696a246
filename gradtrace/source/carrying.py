"""How the user's code carries values on: from one iteration of a loop to the next, from call to call, into containers."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from gradtrace.model.site import Site
from gradtrace.source import texts
from gradtrace.source.questions import assigned, bound, reads
from gradtrace.source.syntax import (
    FUNCTIONS,
    all_nodes,
    ancestor,
    called,
    function_statements,
    guard,
    index_of,
    leaves,
    loop,
    statement,
    statements_around,
)

_GROWING = ("append", "appendleft", "extend", "add", "insert", "push", "put", "update")


def round_trips(site: Site) -> frozenset[str]:
    """What the statement at `site` reads and its loop assigns there or further down: values of the last iteration."""
    around, found = loop(site.path, site.line), statement(site.path, site.line, site.column)
    if around is None or found is None:
        return frozenset()
    later = [node for node in ast.walk(around) if isinstance(node, ast.stmt) and node.lineno >= found.lineno]
    return reads(site) & frozenset().union(*(bound(site._replace(line=node.lineno, column=None)) for node in later))


def state_reads(site: Site) -> frozenset[str]:
    """Attributes that carry state from call to call and that the statement at `site` reads, itself or through a local
    variable (`h, c = self.state`)."""
    found = statement(site.path, site.line, site.column)
    names = reads(site)
    state, containers = _state(site.path)
    for earlier in function_statements(site):
        at = site._replace(line=earlier.lineno, column=None)
        if (
            isinstance(earlier, ast.Assign)
            and found is not None
            and earlier.lineno < found.lineno
            and names & bound(at)
        ):
            names |= reads(at)
    return frozenset(text for text in names if "." in text and text.rpartition(".")[2] in state | containers)


def stored(site: Site, attributes: Collection[str]) -> int | None:
    """The line that puts what the statement at `site` makes into one of these attributes: its own, or a later one of
    the same function (`self.hidden = hidden`)."""
    found, made = statement(site.path, site.line, site.column), bound(site)
    if found is None:
        return None
    if made & set(attributes):
        return found.lineno
    for later in function_statements(site):
        at = site._replace(line=later.lineno, column=None)
        if later.lineno > found.lineno and bound(at) & set(attributes) and reads(at) & made:
            return later.lineno
    return None


def returned_by(site: Site) -> bool:
    """Whether the function around `site` returns what the statement there makes, and makes it again at each call."""
    found = statement(site.path, site.line, site.column)
    function = ancestor(site.path, found, FUNCTIONS) if found is not None else None
    if any("cache" in ast.unparse(one) for one in getattr(function, "decorator_list", ())):
        return False
    made = bound(site)
    returns = (node for node in function_statements(site) if isinstance(node, ast.Return))
    return isinstance(found, ast.Return) or any(
        made & reads(site._replace(line=node.lineno, column=None)) for node in returns
    )


def cached_at(site: Site) -> int | None:
    """The line that keeps what the statement at `site` makes for later runs, where an `if` around it asks whether that is
    there already: `if n not in self.cache: self.cache[n] = bias`."""
    around = guard(site.path, site.line)
    if around is None:
        return None
    made, asked = bound(site), ast.unparse(around.test)
    for one in around.body:
        at = site._replace(line=one.lineno, column=None)
        kept = {text.partition("[")[0] for text in assigned(at) if "." in text or "[" in text}
        if one.lineno >= site.line and (one.lineno == site.line or reads(at) & made) and any(k in asked for k in kept):
            return one.lineno
    return None


def hands_on(site: Site) -> bool:
    """Whether the statement takes the value of the call it is in: `x = f()`, `return f()`."""
    return isinstance(statement(site.path, site.line, site.column), (ast.Assign, ast.AnnAssign, ast.Return))


def plain_value(site: Site) -> str:
    """Of a statement that assigns one variable's value to one other name (`self.hidden = hidden`), that variable."""
    found = statement(site.path, site.line, site.column)
    plain = isinstance(found, ast.Assign) and len(assigned(site)) == 1 and isinstance(found.value, ast.Name)
    return found.value.id if plain else ""  # type: ignore[union-attr]


def grows(site: Site, name: str) -> bool:
    """Whether elements are added to this attribute somewhere, or to this variable of the function around `site`:
    `losses.append(loss)`."""
    index = index_of(site.path)
    target = _Target(name.rpartition(".")[2], "." in name)
    nodes = index.parent if target.attribute and index else chain.from_iterable(map(ast.walk, statements_around(site)))
    return any(_adds_to(node, target) for node in nodes)


def _adds_to(node: ast.AST, target: _Target) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GROWING
        and _ends_with(node.func.value, target)
    )


def collected_at(site: Site, gatherer: Site) -> int | None:
    """The line of the function around `site` that adds what the statement there makes to a list which the statement at
    `gatherer` reads: `rows.append((s, v))`, and there `for s, v in rows`."""
    made, read = bound(site), {name.rpartition(".")[2] for name in reads(gatherer)}
    for later in function_statements(site):
        at = site._replace(line=later.lineno, column=None)
        lists = [_Target(name, attribute) for name in read for attribute in (False, True)]
        adds = isinstance(later, ast.Expr) and any(_adds_to(later.value, one) for one in lists)
        if adds and later.lineno >= site.line and reads(at) & made:
            return later.lineno
    return None


def detached_in_part(site: Site, names: Collection[str]) -> tuple[str, Site] | None:
    """Which of these names the function around `site`, or one that it calls for that, detaches some parts of while it
    leaves others as they are, and where: `(h.detach(), c)`, or `h = h.detach()` where `h, c = state`."""
    made = [one for one in statements_around(site) if isinstance(one, ast.Assign)]
    for one in made:
        named = next((name for name in names if name in _names_of(one.targets)), None)
        if named is None:
            line = _unpacked_and_cut(one, made)
            value = ast.unparse(one.value)
            if line is not None and value in names:
                return value, Site(site.path, line, site.function)
            continue
        if _is_cut_in_part(one.value):
            return named, Site(site.path, one.lineno, site.function)
        helper = _cut_by_helper(site.path, one.value)
        if helper is not None:
            return named, helper
    return None


def _unpacked_and_cut(unpacking: ast.Assign, made: Iterable[ast.Assign]) -> int | None:
    """The first line that detaches one of the names unpacked from a value, where not all of them are detached."""
    parts = _names_of(unpacking.targets)
    lines: dict[str, int] = {}
    for other in made:
        name = ast.unparse(other.targets[0])
        if name in parts and _has_detach(other.value):
            lines[name] = other.lineno
    return next(iter(lines.values())) if 0 < len(lines) < len(parts) else None


def _names_of(targets: Iterable[ast.expr]) -> set[str]:
    return {ast.unparse(leaf) for target in targets for leaf in leaves(target)}


def _cut_by_helper(path: str, call: ast.expr) -> Site | None:
    index = index_of(path)
    if index is None or not isinstance(call, ast.Call):
        return None
    helpers = [node for node in index.parent if isinstance(node, ast.FunctionDef) and node.name == called(call)]
    returns = ((one, node) for one in helpers for node in ast.walk(one) if isinstance(node, ast.Return) and node.value)
    cut = next(((one.name, node.lineno) for one, node in returns if node.value and _is_cut_in_part(node.value)), None)
    return Site(path, cut[1], cut[0]) if cut else None


def _is_cut_in_part(value: ast.expr) -> bool:
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    cut = [_has_detach(part) for part in parts if not isinstance(part, ast.Constant)]
    return any(cut) and not all(cut)


def _has_detach(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ("detach", "data") for node in ast.walk(value))


def handed_over(site: Site, name: str) -> tuple[int, bool] | None:
    """The line further down the loop around `site` that gives `name` a value made before, as `prev = out` does, for the
    next iteration; and whether it does so without a graph (`prev = out.detach()`)."""
    around, found = loop(site.path, site.line), statement(site.path, site.line, site.column)
    if around is None or found is None:
        return None
    last: ast.Assign | None = None
    for node in ast.walk(around):
        first = found.lineno if last is None else last.lineno + 1
        if not isinstance(node, ast.Assign) or node.lineno < first:
            continue
        if name in bound(site._replace(line=node.lineno, column=None)):
            last = node
    if last is None or last is found:
        return None
    cut = ast.unparse(last.value).endswith((".detach()", ".data", ".item()"))
    return (last.lineno, cut) if cut or not _computes(last.value) else None


def _computes(value: ast.expr) -> bool:
    """Whether an expression calls or calculates anything, the condition of a conditional one aside."""
    if isinstance(value, ast.IfExp):
        return _computes(value.body) or _computes(value.orelse)
    return any(isinstance(node, (ast.Call, ast.BinOp)) for node in ast.walk(value))


@texts.cached(256)
def _state(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names of attributes that some function other than `__init__` assigns, and of those that some function adds to."""
    assigned, grown = set(), set()
    for node in all_nodes(path):
        name = _changed(node)
        if name and getattr(ancestor(path, node, FUNCTIONS), "name", "") != "__init__":
            assigned.add(name)
        if isinstance(node, ast.Call) and called(node) in _GROWING and isinstance(node.func, ast.Attribute):
            grown.add(getattr(node.func.value, "attr", ""))
    return frozenset(assigned), frozenset(grown)


def _changed(node: ast.AST) -> str:
    """The attribute that a node gives a value: `self.h = x`, `self.h[i] = x`, `self.h.copy_(x)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return getattr(node.func.value, "attr", "") if node.func.attr.endswith("_") else ""
    if not isinstance(node, (ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Store):
        return ""
    return getattr(node.value if isinstance(node, ast.Subscript) else node, "attr", "")


def kept_at(path: str, holder: str, running: Collection[str] = ()) -> int | None:
    """The line that puts tensors into a holder: `losses.append(loss)`, `total += loss`, `self.ema = 0.9 * self.ema +
    x`.

    `holder` is a name such as `self.rows[]` (`[]` stands for any element); it is looked up by the last name in it that
    is a variable's or an attribute's, since another function calls the object otherwise. A variable is looked for in the
    functions of these qualified names first, which ran when its tensors were made.
    """
    owner, _, name = re.sub(r"\[.*", "", holder).rpartition(".")
    lines: list[tuple[bool, int, bool, int]] = []
    for node in all_nodes(path):
        rank = _keeps(node, _Target(name, bool(owner)), "[" in holder)
        if rank:
            elsewhere = not owner and _function_around(path, node) not in running
            line = getattr(node, "lineno", 0)
            lines.append((elsewhere, rank, loop(path, line) is None, line))
    return min(lines)[3] if lines else None


def _function_around(path: str, node: ast.AST) -> str:
    """The qualified name of the function that a node is in, as its code object has it."""
    names = []
    around = ancestor(path, node, (*FUNCTIONS, ast.ClassDef))
    while around is not None:
        names.append(getattr(around, "name", "<lambda>"))
        around = ancestor(path, around, (*FUNCTIONS, ast.ClassDef))
        if isinstance(around, FUNCTIONS):
            names.append("<locals>")
    return ".".join(reversed(names)) or "<module>"


class _Target(NamedTuple):
    """A variable, or an attribute of whatever object."""

    name: str
    attribute: bool


def _keeps(node: ast.AST, name: _Target, container: bool) -> int:
    """How well a node fits the line that adds to `name`: 1 is best, 0 not at all."""
    if container and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return int(node.func.attr in _GROWING and _ends_with(node.func.value, name))
    if isinstance(node, ast.AugAssign):
        return int(_ends_with(node.target, name))
    if not isinstance(node, ast.Assign):
        return 0
    targets = [leaf for target in node.targets for leaf in leaves(target)]
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
