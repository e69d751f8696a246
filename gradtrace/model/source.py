"""Reads the user's source: which statement stands on a line, what it assigns and reads, which loop holds it.

Sources come through `linecache`, so that a script which deleted itself after the start, or came by stdin, is still
read.
Every question has an answer for sources that cannot be read or parsed: None, or nothing.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeGuard

from gradtrace.model.site import Site

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_GROWING = ("append", "appendleft", "extend", "add", "insert", "push", "put", "update")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Index:
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


@lru_cache(maxsize=256)
def _index(path: str) -> _Index | None:
    try:
        return _Index(ast.parse("".join(linecache.getlines(path))))
    except (SyntaxError, ValueError, RecursionError):
        return None


#: lines that came with a saved graph: the file may have changed since, or lie on another machine
_recalled: dict[tuple[str, int], str] = {}


def recall(lines: Mapping[tuple[str, int], str]) -> None:
    """From here on these are the texts of these lines, whatever the files say."""
    _recalled.update(lines)


def line_text(path: str, line: int) -> str:
    """The source line without its indentation and line end; empty where it cannot be read."""
    known = _recalled.get((path, line))
    return linecache.getline(path, line).strip() if known is None else known


def lines_around(path: str, line: int, more: int) -> dict[int, str]:
    """The line and `more` on each side, as far as there are any, with their indentation."""
    numbers = range(max(line - more, 1), line + more + 1)
    if (path, line) in _recalled:
        return {number: _recalled[path, number] for number in numbers if (path, number) in _recalled}
    found = {number: linecache.getline(path, number).rstrip() for number in numbers}
    return found if found[line] else {}


def statement(path: str, line: int, column: int | None = None) -> ast.stmt | None:
    """The innermost statement on a line, of several the one at `column`; for a compound statement only its header
    counts."""
    index = _index(path)
    found = index.by_line.get(line, []) if index else []
    here = [one for one in found if column is not None and _spans(one, line, column)]
    return next(reversed(here or found), None)


def _spans(node: ast.stmt, line: int, column: int) -> bool:
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (line, column) < end


def text_of(path: str, line: int) -> str:
    """The source of the statement on a line, of a compound one its head, without the indentation of its first line."""
    found = statement(path, line)
    first, last = (found.lineno, _last_own_line(found)) if found is not None else (line, line)
    lines = [linecache.getline(path, number).rstrip() for number in range(first, last + 1)]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(text[indent:] if not text[:indent].strip() else text for text in lines).rstrip()


def loops_around(path: str, line: int) -> list[Loop]:
    """The loops to whose head or body the statement on a line belongs, within the same function, outermost first."""
    found: list[Loop] = []
    at: ast.AST | None = statement(path, line)
    while at is not None and not isinstance(at, _FUNCTIONS):
        if isinstance(at, _LOOPS) and (at.lineno == line or _in_body(at, line)):
            found.insert(0, at)
        at = _ancestor(path, at, (*_LOOPS, *_FUNCTIONS))
    return found


def call(site: Site, names: tuple[str, ...]) -> ast.Call | None:
    """The call of one of `names` (`loss.backward(...)`, `grad(...)`) that the frame of `site` was in."""
    found = statement(site.path, site.line, site.column)
    calls = [node for node in ast.walk(found) if isinstance(node, ast.Call)] if found else []
    named = [node for node in calls if _called(node) in names]
    exact = [node for node in named if (node.lineno, node.col_offset) == (site.line, site.column)]
    return next(iter(exact or named), None)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


#: the place among the arguments of an option that is not given by name, for methods and for functions of a module
_PLACES = {
    ("retain_graph", "backward", False): 1,
    ("retain_graph", "backward", True): 2,
    ("retain_graph", "grad", True): 3,
    ("create_graph", "backward", False): 2,
    ("create_graph", "backward", True): 3,
    ("create_graph", "grad", True): 4,
}


@lru_cache(maxsize=4096)  # asked for at every call that keeps its graph
def passed(site: Site, option: str) -> str:
    """What a call in the statement at `site` gives for an option such as retain_graph; empty where it does not."""
    found = statement(site.path, site.line, site.column)
    calls = [node for node in _own_nodes(found) if isinstance(node, ast.Call)] if found else []
    words = [word.value for node in calls for word in node.keywords if word.arg in (option, None)]
    for node in calls:
        name = _called(node)
        of_module = isinstance(node.func, ast.Name) or ast.unparse(node.func) == f"torch.autograd.{name}"
        words += node.args[_PLACES.get((option, name, of_module), len(node.args)) :][:1]
    return ast.unparse(words[0]) if words else ""


@lru_cache(maxsize=4096)  # asked for at every backward call
def root_of(site: Site) -> str:
    """The user's expression for what `backward` or `grad` was asked of at `site`; empty where it cannot be told."""
    found = call(site, ("backward", "grad"))
    if found is None:
        return ""
    if isinstance(found.func, ast.Attribute) and ast.unparse(found.func.value) not in ("torch.autograd", "autograd"):
        return ast.unparse(found.func.value)
    asked = [*found.args[:1], *(word.value for word in found.keywords if word.arg in ("tensors", "outputs"))]
    return ast.unparse(asked[0]) if asked else ""


@lru_cache(maxsize=4096)  # asked for at every node of a graph
def assigned(site: Site) -> tuple[str, ...]:
    """What the statement at `site` assigns to: `("pred", "state")`, `("self.memory",)`."""
    found = statement(site.path, site.line, site.column)
    if isinstance(found, ast.Assign):
        targets = found.targets
    elif isinstance(found, (ast.AugAssign, ast.AnnAssign)):
        targets = [found.target]
    else:
        return ()
    return tuple(ast.unparse(leaf) for target in targets for leaf in _leaves(target))


def targets(path: str, line: int) -> tuple[str, ...]:
    """What the statement on a line gives a value, also as a loop's or a `with`'s variable, or by `:=`."""
    found = statement(path, line)
    heads: list[ast.expr | None] = []
    if isinstance(found, (ast.For, ast.AsyncFor)):
        heads = [found.target]
    elif isinstance(found, (ast.With, ast.AsyncWith)):
        heads = [item.optional_vars for item in found.items]
    named = [node.target for node in _own_nodes(found) if isinstance(node, ast.NamedExpr)] if found else []
    texts = (ast.unparse(leaf) for head in (*heads, *named) if head is not None for leaf in _leaves(head))
    return (*assigned(Site(path, line, "")), *texts)


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for part in target.elts for leaf in _leaves(part)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def reads(site: Site) -> frozenset[str]:
    """Names and attributes that the statement at `site` reads: `{"x", "self", "self.memory"}`."""
    found = statement(site.path, site.line, site.column)
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


def bound(site: Site) -> frozenset[str]:
    """The variables and attributes that the statement at `site` changes: of `protos[c] = x` this is `protos`, of
    `mean.mul_(0.9).add_(x)` it is `mean`."""
    found = statement(site.path, site.line, site.column)
    written = _written(found.value) if isinstance(found, ast.Expr) else ""
    texts = (written, *assigned(site))
    return frozenset(text.partition("[")[0] for text in texts if text)


def _written(found: ast.expr) -> str:
    """What an expression writes to in place: `mean` for `mean.mul_(0.9).add_(x)`, otherwise nothing."""
    at = found
    while isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr.endswith("_"):
        at = at.func.value
    return ast.unparse(at) if at is not found else ""


def round_trips(site: Site) -> frozenset[str]:
    """What the statement at `site` reads and its loop assigns there or further down: values of the last turn."""
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
    for earlier in _function_statements(site):
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
    for later in _function_statements(site):
        at = site._replace(line=later.lineno, column=None)
        if later.lineno > found.lineno and bound(at) & set(attributes) and reads(at) & made:
            return later.lineno
    return None


def returned_by(site: Site) -> bool:
    """Whether the function around `site` returns what the statement there makes, and makes it anew at each call."""
    found = statement(site.path, site.line, site.column)
    function = _ancestor(site.path, found, _FUNCTIONS) if found is not None else None
    if any("cache" in ast.unparse(one) for one in getattr(function, "decorator_list", ())):
        return False
    made = bound(site)
    returns = (node for node in _function_statements(site) if isinstance(node, ast.Return))
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


def opens_loop(site: Site) -> bool:
    """Whether the head of a loop stands at `site`."""
    return isinstance(statement(site.path, site.line, site.column), _LOOPS)


def hands_on(site: Site) -> bool:
    """Whether the statement takes the value of the call it is in: `x = f()`, `return f()`."""
    return isinstance(statement(site.path, site.line, site.column), (ast.Assign, ast.AnnAssign, ast.Return))


def shows(site: Site) -> bool:
    """Whether the statement at `site` is a call and no more, as `print(...)` is: nothing goes on from there."""
    return isinstance(statement(site.path, site.line, site.column), ast.Expr)


def plain_value(site: Site) -> str:
    """Of a statement that assigns one variable's value to one other name (`self.hidden = hidden`), that variable."""
    found = statement(site.path, site.line, site.column)
    plain = isinstance(found, ast.Assign) and len(assigned(site)) == 1 and isinstance(found.value, ast.Name)
    return found.value.id if plain else ""  # type: ignore[union-attr]


def grows(site: Site, name: str) -> bool:
    """Whether elements are added to this attribute somewhere, or to this variable of the function around `site`:
    `losses.append(loss)`."""
    index = _index(site.path)
    target = _Target(name.rpartition(".")[2], "." in name)
    nodes = index.parent if target.attribute and index else chain.from_iterable(map(ast.walk, _around(site)))
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
    for later in _function_statements(site):
        at = site._replace(line=later.lineno, column=None)
        lists = [_Target(name, attribute) for name in read for attribute in (False, True)]
        adds = isinstance(later, ast.Expr) and any(_adds_to(later.value, one) for one in lists)
        if adds and later.lineno >= site.line and reads(at) & made:
            return later.lineno
    return None


def detached_in_part(site: Site, names: Collection[str]) -> tuple[str, Site] | None:
    """Which of these names the function around `site`, or one that it calls for that, detaches some parts of while it
    leaves others as they are, and where: `(h.detach(), c)`, or `h = h.detach()` where `h, c = state`."""
    made = [one for one in _around(site) if isinstance(one, ast.Assign)]
    for one in made:
        named = next((name for name in names if name in _names_of(one.targets)), None)
        if named and _is_cut_in_part(one.value):
            return named, Site(site.path, one.lineno, site.function)
        if named and (found := _cut_by_helper(site.path, one.value)):
            return named, found
        if not named and (value := ast.unparse(one.value)) in names:
            parts = _names_of(one.targets)
            cut = {ast.unparse(other.targets[0]): other.lineno for other in made if _has_detach(other.value)}
            lines = [line for name, line in cut.items() if name in parts]
            if 0 < len(lines) < len(parts):
                return value, Site(site.path, lines[0], site.function)
    return None


def _names_of(targets: Iterable[ast.expr]) -> set[str]:
    return {ast.unparse(leaf) for target in targets for leaf in _leaves(target)}


def _cut_by_helper(path: str, call: ast.expr) -> Site | None:
    index = _index(path)
    if index is None or not isinstance(call, ast.Call):
        return None
    helpers = [node for node in index.parent if isinstance(node, ast.FunctionDef) and node.name == _called(call)]
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
    next turn; and whether it does so without a graph (`prev = out.detach()`)."""
    around, found = loop(site.path, site.line), statement(site.path, site.line, site.column)
    if around is None or found is None:
        return None
    nodes = [node for node in ast.walk(around) if isinstance(node, ast.Assign) and node.lineno >= found.lineno]
    given = [node for node in nodes if name in bound(site._replace(line=node.lineno, column=None))]
    last = max(given, key=lambda node: node.lineno, default=None)
    if last is None or last is found:
        return None
    text = ast.unparse(last.value)
    cut = any(text.endswith(end) for end in (".detach()", ".data", ".item()"))
    parts = [last.value.body, last.value.orelse] if isinstance(last.value, ast.IfExp) else [last.value]
    plain = cut or not any(isinstance(node, (ast.Call, ast.BinOp)) for part in parts for node in ast.walk(part))
    return (last.lineno, cut) if plain else None


def _function_statements(site: Site) -> list[ast.stmt]:
    found = statement(site.path, site.line, site.column)
    function = _ancestor(site.path, found, _FUNCTIONS) if found is not None else None
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt)] if function is not None else []


@lru_cache(maxsize=256)
def _state(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names of attributes that some function other than `__init__` assigns, and of those that some function adds to."""
    index = _index(path)
    assigned, grown = set(), set()
    for node in index.parent if index else ():
        name = _changed(node)
        if name and getattr(_ancestor(path, node, _FUNCTIONS), "name", "") != "__init__":
            assigned.add(name)
        if isinstance(node, ast.Call) and _called(node) in _GROWING and isinstance(node.func, ast.Attribute):
            grown.add(getattr(node.func.value, "attr", ""))
    return frozenset(assigned), frozenset(grown)


def _changed(node: ast.AST) -> str:
    """The attribute that a node gives a value: `self.h = x`, `self.h[i] = x`, `self.h.copy_(x)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return getattr(node.func.value, "attr", "") if node.func.attr.endswith("_") else ""
    if not isinstance(node, (ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Store):
        return ""
    return getattr(node.value if isinstance(node, ast.Subscript) else node, "attr", "")


def _ancestor(path: str, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
    index = _index(path)
    at = index.parent.get(node) if index else None
    while at is not None and not isinstance(at, kinds) and index:
        at = index.parent.get(at)
    return at


@lru_cache(maxsize=4096)  # asked for at every step
def loop(path: str, line: int) -> Loop | None:
    """The innermost `for` or `while` around the statement on `line`, within the same function."""
    at: ast.AST | None = statement(path, line)
    while at is not None:
        at = _ancestor(path, at, (*_LOOPS, *_FUNCTIONS))
        if isinstance(at, _FUNCTIONS):
            return None
        if isinstance(at, _LOOPS) and _in_body(at, line):
            return at
    return None


def guard(path: str, line: int) -> ast.If | None:
    """The innermost `if` around the statement on `line`, within the same loop."""
    found = statement(path, line)
    at = _ancestor(path, found, (ast.If, *_LOOPS, *_FUNCTIONS)) if found else None
    return at if isinstance(at, ast.If) else None


def conditional(site: Site, names: tuple[str, ...]) -> list[int]:
    """The lines below `site` in its function that call one of `names`, or a function of the file that does, and that run
    only where an `if` says so. A scheduler's `step` is another matter."""
    found, index = statement(site.path, site.line, site.column), _index(site.path)
    if found is None or index is None:
        return []
    calls = [node for node in index.parent if isinstance(node, ast.Call)]
    direct = [_ancestor(site.path, node, _FUNCTIONS) for node in calls if _called(node) in names]
    wanted = {*names, *(getattr(function, "name", "") for function in direct)} - {""}
    here = _ancestor(site.path, found, _FUNCTIONS)
    meant = [node for node in calls if _called(node) in wanted and "sched" not in ast.unparse(node.func)]
    near = [node for node in meant if _ancestor(site.path, node, _FUNCTIONS) is here]
    guards = [(node, _ancestor(site.path, node, (ast.If,))) for node in near]
    return [node.lineno for node, at in guards if isinstance(at, ast.If) and at.lineno > site.line]


def _in_body(node: Loop, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)


def in_loop(found: Loop, line: int) -> bool:
    """Whether `line` belongs to the loop's body."""
    return _in_body(found, line)


def changes(path: str, expression: ast.expr) -> bool:
    """Whether a variable or attribute in the expression is given values again: in a loop, or on several lines."""
    named = {ast.unparse(node) for node in ast.walk(expression) if isinstance(node, (ast.Name, ast.Attribute))}
    index = _index(path)
    written = [
        node
        for node in (index.parent if index else ())
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node) in named
    ]
    return len(written) > 1 or any(_ancestor(path, node, _LOOPS) is not None for node in written)


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
        return int(node.func.attr in _GROWING and _ends_with(node.func.value, name))
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


def uncalled(path: str, method: str) -> int | None:
    """The first line that names a method and forgets to call it: `optimizer.zero_grad`."""
    index = _index(path)
    found = (node for node in (index.parent if index else ()) if isinstance(node, ast.Expr))
    return min((node.lineno for node in found if getattr(node.value, "attr", None) == method), default=None)


def functions(path: str) -> list[tuple[ast.AST, str]]:
    """Every node of a file with the name of the function that holds it; empty at the top."""
    index = _index(path)
    holders = ((node, _ancestor(path, node, _FUNCTIONS)) for node in (index.parent if index else ()))
    return [(node, getattr(holder, "name", "")) for node, holder in holders]


def function_lines(path: str, line: int) -> tuple[int, int] | None:
    """The first and last line of the function whose `def`, or decorator, stands on a line."""
    index = _index(path)
    for node in index.parent if index else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            heads = (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
            if line in heads:
                return min(heads), node.end_lineno or node.lineno
    return None


def returned(path: str, line: int) -> tuple[int, tuple[str, ...]] | None:
    """The line of the only `return` of the function defined on `line` (or decorated there), and the expressions that it
    returns."""
    index = _index(path)
    function = next(
        (
            node
            for node in (index.parent if index else ())
            if isinstance(node, ast.FunctionDef)
            and line in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
        ),
        None,
    )
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function else []
    if len(found) != 1 or found[0].value is None:
        return None
    value = found[0].value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return found[0].lineno, tuple(ast.unparse(part) for part in parts)


def assigned_at(path: str, within: int, name: str) -> int | None:
    """The only line of the function that holds line `within`, or at the top of the file, which assigns to `name`."""
    index, function = _index(path), _ancestor(path, statement(path, within) or ast.Pass(), _FUNCTIONS)
    named = [node for node in (index.parent if index else ()) if isinstance(node, ast.Name) and node.id == name]
    targets = [node for node in named if isinstance(node.ctx, ast.Store)]
    lines = {node.lineno for node in targets if _ancestor(path, node, _FUNCTIONS) is function}
    return lines.pop() if len(lines) == 1 else None


_OFF = ("no_grad", "inference_mode", "set_grad_enabled")


def gradients_off(path: str, line: int) -> int | None:
    """The line of the `with torch.no_grad():` around a statement, or of the decorator of its function, that turns
    gradients off."""
    at: ast.AST | None = statement(path, line)
    while at is not None:
        if isinstance(at, (ast.With, ast.AsyncWith)) and any(_turns_off(item.context_expr) for item in at.items):
            return at.lineno
        if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return next((one.lineno for one in at.decorator_list if _turns_off(one)), None)
        at = _ancestor(path, at, (ast.With, ast.AsyncWith, *_FUNCTIONS))
    return None


#: context managers of tests in which an error is what is wanted
_RAISES = ("raises", "assertRaises", "assertRaisesRegex")


def expects_error(path: str, line: int) -> bool:
    """Whether the statement on a line stands in a test's `with pytest.raises(...):`, within the same function."""
    at: ast.AST | None = statement(path, line)
    while at is not None and not isinstance(at, _FUNCTIONS):
        if isinstance(at, ast.With) and any(_called_as(item.context_expr) in _RAISES for item in at.items):
            return True
        at = _ancestor(path, at, (ast.With, *_FUNCTIONS))
    return False


def _called_as(found: ast.expr) -> str:
    return _called(found) if isinstance(found, ast.Call) else ""


def _turns_off(found: ast.expr) -> bool:
    return any(getattr(node, "attr", getattr(node, "id", "")) in _OFF for node in ast.walk(found))


def mentions(path: str, name: str) -> bool:
    """Whether the code of a file uses an attribute or variable of this name for more than to set it up.

    To initialise its weights in a constructor (`self.norm.weight`) is no use; its name in a string is one.
    """
    index = _index(path)
    for node in index.parent if index else ():
        if isinstance(node, ast.Constant) and node.value == name:
            return True
        if getattr(node, "attr", getattr(node, "id", None)) == name and isinstance(
            getattr(node, "ctx", None), ast.Load
        ):
            setup = getattr(_ancestor(path, node, _FUNCTIONS), "name", "").lstrip("_").startswith(("init", "reset"))
            if not (setup and index and isinstance(index.parent[node], ast.Attribute)):
                return True
    return False


def attribute_set(path: str, cls: str, name: str) -> ast.stmt | None:
    """The statement of class `cls` that first assigns to its attribute `name`."""
    index = _index(path)
    found = [
        at
        for node in (index.parent if index else ())
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store) and index
        if isinstance(at := _holding(index, node), (ast.Assign, ast.AnnAssign))
        if getattr(_ancestor(path, node, (ast.ClassDef,)), "name", "") == cls
    ]
    return min(found, key=lambda at: at.lineno, default=None)


def _holding(index: _Index, node: ast.AST) -> ast.AST:
    """What a target stands in, past the tuple of several."""
    at = index.parent[node]
    return index.parent[at] if isinstance(at, (ast.Tuple, ast.List)) else at


def is_in(path: str, found: ast.stmt, function: str) -> bool:
    """Whether a statement of a file stands in a function of this name."""
    return getattr(_ancestor(path, found, _FUNCTIONS), "name", "") == function


def set_before(site: Site, name: str) -> int | None:
    """The last line of the function around `site`, before that, which gives `name` a value without a gradient step."""
    before = (node for node in _around(site) if isinstance(node, ast.Assign) and node.lineno < site.line)
    lines = [
        node.lineno
        for node in before
        if name in bound(site._replace(line=node.lineno, column=None)) and not _graded(node.value)
    ]
    return max(lines, default=None)


def graded(site: Site) -> str:
    """The variable of the function around `site` whose .grad is read there although nothing asks for one; else empty."""
    statements = _around(site)
    asked = {
        ast.unparse(node.value) for node in _attributes(statements) if node.attr.startswith(("requires_grad", "retain"))
    }
    names = {text for node in statements for text in _graded(node)} - asked
    asking = (ast.unparse(node) for node in statements if isinstance(node, ast.Assign))
    names -= {text.partition(" = ")[0] for text in asking if "requires_grad" in text or "Parameter(" in text}
    return next((name for name in sorted(names) if set_before(site, name)), "")


def _graded(found: ast.AST) -> set[str]:
    """The variables whose .grad an expression or statement reads."""
    grads = (node for node in ast.walk(found) if isinstance(node, ast.Attribute) and node.attr == "grad")
    return {ast.unparse(node.value) for node in grads if isinstance(node.value, (ast.Name, ast.Attribute))}


def _attributes(statements: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    return (node for found in statements for node in ast.walk(found) if isinstance(node, ast.Attribute))


def never_read(site: Site) -> bool:
    """Whether the statement at `site` assigns a variable of a function that nothing reads before it is assigned anew, or
    the function ends."""
    found = statement(site.path, site.line, site.column)
    if not isinstance(found, ast.Assign) or not all(isinstance(one, ast.Name) for one in found.targets):
        return False
    names = {one.id for one in found.targets if isinstance(one, ast.Name)}
    index = _index(site.path)
    block = getattr(index.parent[found], "body", []) if index else []
    if found not in block or not isinstance(index and index.parent[found], _FUNCTIONS):
        return False
    for later in block[block.index(found) + 1 :]:
        mentions = [node for node in ast.walk(later) if isinstance(node, ast.Name) and node.id in names]
        if any(not isinstance(node.ctx, ast.Store) for node in mentions) or isinstance(later, _FUNCTIONS):
            return False
        if mentions:
            return isinstance(later, ast.Assign)
    return True


def gives_none(path: str, line: int) -> int | None:
    """The last line of the function defined at `line` that returns None, or several values of which one is None."""
    function = statement(path, line)
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
    values = [(node.lineno, node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]) for node in found]
    none = [at for at, parts in values if any(isinstance(one, ast.Constant) and one.value is None for one in parts)]
    return max(none, default=None)


def called_around(site: Site, name: str) -> int | None:
    """The line of the only call of `name` (`nn.name` as well) in the function around `site`."""
    nodes = (node for found in _around(site) for node in ast.walk(found) if isinstance(node, ast.Call))
    lines = {node.lineno for node in nodes if ast.unparse(node.func).rpartition(".")[2] == name}
    return lines.pop() if len(lines) == 1 else None


def _around(site: Site) -> list[ast.stmt]:
    """The statements of the function around `site`; at the top of a file all of it."""
    index = _index(site.path)
    return _function_statements(site) or ([one for found in index.by_line.values() for one in found] if index else [])


def listed(site: Site) -> tuple[str, ...]:
    """The variables in lists among the arguments of the calls at `site`: `image` in `Adam([image])`."""
    found = statement(site.path, site.line, site.column)
    lists = [node for node in _own_nodes(found) if isinstance(node, ast.List)] if found else []
    return tuple(ast.unparse(one) for node in lists for one in node.elts if isinstance(one, (ast.Name, ast.Attribute)))


def unrequired(site: Site) -> int | None:
    """The first line of the file that makes something that requires no grad: by requires_grad=False, or as embeddings
    that are frozen unless one says freeze=False."""
    index = _index(site.path)
    return min((node.lineno for node in (index.parent if index else ()) if _is_unrequired(node)), default=None)


def _is_unrequired(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    pretrained = ast.unparse(node.func).endswith("Embedding.from_pretrained")
    return words.get("requires_grad") == "False" or (pretrained and words.get("freeze") != "False")
