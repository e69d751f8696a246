"""Questions to the user's source: what a statement assigns and reads, what a call is given, what is never used.

Like those of `syntax`, they all have an answer for sources that cannot be read.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TypeGuard

from gradtrace.model.site import Site
from gradtrace.source import texts
from gradtrace.source.syntax import (
    FUNCTIONS,
    LOOPS,
    Index,
    all_nodes,
    ancestor,
    call,
    call_at,
    called,
    function_at,
    index_of,
    leaves,
    own_nodes,
    statement,
    statements_around,
)

#: the place among the arguments of an option that is not given by name, for methods and for functions of a module
_PLACES = {
    ("retain_graph", "backward", False): 1,
    ("retain_graph", "backward", True): 2,
    ("retain_graph", "grad", True): 3,
    ("create_graph", "backward", False): 2,
    ("create_graph", "backward", True): 3,
    ("create_graph", "grad", True): 4,
}
#: give all variables of a script at once
_READING_ALL = {"globals", "locals", "vars", "exec", "eval"}


@texts.cached(4096)  # needed at every call that keeps its graph
def passed(site: Site, option: str) -> str:
    """What a call in the statement at `site` gives for an option such as retain_graph; empty where it does not."""
    found = statement(site.path, site.line, site.column)
    calls = [node for node in own_nodes(found) if isinstance(node, ast.Call)] if found else []
    words = [word.value for node in calls for word in node.keywords if word.arg in (option, None)]
    for node in calls:
        name = called(node)
        of_module = isinstance(node.func, ast.Name) or ast.unparse(node.func) == f"torch.autograd.{name}"
        words += node.args[_PLACES.get((option, name, of_module), len(node.args)) :][:1]
    return ast.unparse(words[0]) if words else ""


@texts.cached(4096)  # needed at every backward call
def root_of(site: Site) -> str:
    """The user's expression for what `backward` or `grad` is called on at `site`; empty where it is not known."""
    found = call(site, ("backward", "grad"))
    if found is None:
        return ""
    if isinstance(found.func, ast.Attribute) and ast.unparse(found.func.value) not in ("torch.autograd", "autograd"):
        return ast.unparse(found.func.value)
    asked = [*found.args[:1], *(word.value for word in found.keywords if word.arg in ("tensors", "outputs"))]
    return ast.unparse(asked[0]) if asked else ""


@texts.cached(256)
def lines_calling(path: str, name: str, method: str) -> frozenset[int]:
    """The lines of a file that call `method` of `name`, or of an attribute of that name: `opt.step()`, `self.opt.step()`."""
    index = index_of(path)
    found = set()
    for node in index.parent if index else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            owner = ast.unparse(node.func.value)
            given = [ast.unparse(one) for one in node.args[:1]]
            if name in [text.rpartition(".")[2] for text in (owner, *given)]:
                found.add(node.lineno)
    return frozenset(found)


@texts.cached(4096)  # needed at every node of a graph
def assigned(site: Site) -> tuple[str, ...]:
    """What the statement at `site` assigns to: `("pred", "state")`, `("self.memory",)`."""
    found = statement(site.path, site.line, site.column)
    if isinstance(found, ast.Assign):
        targets = found.targets
    elif isinstance(found, (ast.AugAssign, ast.AnnAssign)):
        targets = [found.target]
    else:
        return ()
    return tuple(ast.unparse(leaf) for target in targets for leaf in leaves(target))


def targets(path: str, line: int) -> tuple[str, ...]:
    """What the statement on a line gives a value, also as a loop's or a `with`'s variable, or by `:=`."""
    found = statement(path, line)
    heads: list[ast.expr | None] = []
    if isinstance(found, (ast.For, ast.AsyncFor)):
        heads = [found.target]
    elif isinstance(found, (ast.With, ast.AsyncWith)):
        heads = [item.optional_vars for item in found.items]
    named = [node.target for node in own_nodes(found) if isinstance(node, ast.NamedExpr)] if found else []
    texts = (ast.unparse(leaf) for head in (*heads, *named) if head is not None for leaf in leaves(head))
    return (*assigned(Site(path, line, "")), *texts)


def reads(site: Site) -> frozenset[str]:
    """Names and attributes that the statement at `site` reads: `{"x", "self", "self.memory"}`."""
    found = statement(site.path, site.line, site.column)
    if found is None:
        return frozenset()
    loads = (node for node in own_nodes(found) if isinstance(node, (ast.Name, ast.Attribute)))
    texts = {ast.unparse(node) for node in loads if isinstance(node.ctx, ast.Load)}
    if isinstance(found, ast.AugAssign):
        texts.add(ast.unparse(found.target))
    return frozenset(texts)


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


def shows(site: Site) -> bool:
    """Whether the statement at `site` is a call and no more, as `print(...)` is: nothing goes on from there."""
    return isinstance(statement(site.path, site.line, site.column), ast.Expr)


def conditional(site: Site, names: tuple[str, ...]) -> list[int]:
    """The lines below `site` in its function that call one of `names`, or a function of the file that does, and that run
    only where an `if` says so. A scheduler's `step` is another matter."""
    found = statement(site.path, site.line, site.column)
    if found is None:
        return []
    here = ancestor(site.path, found, FUNCTIONS)
    guarded = _guarded_calls(site.path, names)
    return [line for function, line, guard in guarded if function is here and guard > site.line]


@texts.cached(256)
def _guarded_calls(path: str, names: tuple[str, ...]) -> list[tuple[ast.AST | None, int, int]]:
    """The calls under an `if` of one of `names`, or of a function of the file that calls one: the function that each
    stands in, its line, and the line of the `if`."""
    calls = [node for node in all_nodes(path) if isinstance(node, ast.Call)]
    direct = [ancestor(path, node, FUNCTIONS) for node in calls if called(node) in names]
    wanted = {*names, *(getattr(function, "name", "") for function in direct)} - {""}
    found = []
    for node in calls:
        guard = ancestor(path, node, (ast.If,)) if called(node) in wanted else None
        if isinstance(guard, ast.If) and "sched" not in ast.unparse(node.func):
            found.append((ancestor(path, node, FUNCTIONS), node.lineno, guard.lineno))
    return found


def changes(path: str, expression: ast.expr) -> bool:
    """Whether a variable or attribute in the expression is given values again: in a loop, or on several lines."""
    named = {ast.unparse(node) for node in ast.walk(expression) if isinstance(node, (ast.Name, ast.Attribute))}
    written = []
    for node in all_nodes(path):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Store):
            continue
        if ast.unparse(node) in named:
            written.append(node)
    return len(written) > 1 or any(ancestor(path, node, LOOPS) is not None for node in written)


@texts.cached(4096)
def sample_call(site: Site) -> ast.Call | None:
    """The call of a `sample` that the frame of `site` was in: `dist.sample()`."""
    found = call_at(site)
    return found if found is not None and called(found) == "sample" else None


def call_of(path: str, method: str, holder: str) -> int | None:
    """The first line on which a method of this name is called: on what the code calls `holder`, if there is one such."""
    calls = [node for node in all_nodes(path) if isinstance(node, ast.Call) and called(node) == method]
    last = holder.rpartition(".")[2]
    on_it = [node for node in calls if _receiver(node).rpartition(".")[2] == last]
    return min((node.lineno for node in on_it or calls), default=None)


def _receiver(node: ast.Call) -> str:
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


@texts.cached(4096)
def uncalled(path: str, method: str) -> int | None:
    """The first line that names a method and forgets to call it: `optimizer.zero_grad`."""
    found = (node for node in all_nodes(path) if isinstance(node, ast.Expr))
    return min((node.lineno for node in found if getattr(node.value, "attr", None) == method), default=None)


@texts.cached(4096)
def returned(path: str, line: int) -> tuple[int, tuple[str, ...]] | None:
    """The line of the only `return` of the function defined on `line` (or decorated there), and the expressions that it
    returns."""
    function = function_at(path, line)
    if not isinstance(function, ast.FunctionDef):
        return None
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(found) != 1 or found[0].value is None:
        return None
    value = found[0].value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return found[0].lineno, tuple(ast.unparse(part) for part in parts)


def assigned_at(path: str, within: int, name: str) -> int | None:
    """The only line of the function that holds line `within`, or at the top of the file, which assigns to `name`."""
    function = ancestor(path, statement(path, within) or ast.Pass(), FUNCTIONS)
    named = [node for node in all_nodes(path) if isinstance(node, ast.Name) and node.id == name]
    targets = [node for node in named if isinstance(node.ctx, ast.Store)]
    lines = {node.lineno for node in targets if ancestor(path, node, FUNCTIONS) is function}
    return lines.pop() if len(lines) == 1 else None


_ON = ("enable_grad", "set_grad_enabled")
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
        at = ancestor(path, at, (ast.With, ast.AsyncWith, *FUNCTIONS))
    return None


#: context managers of tests in which an error is what is wanted
_RAISES = ("raises", "assertRaises", "assertRaisesRegex")


def expects_error(path: str, line: int) -> bool:
    """Whether the statement on a line stands in a test's `with pytest.raises(...):`, within the same function."""
    at: ast.AST | None = statement(path, line)
    while at is not None and not isinstance(at, FUNCTIONS):
        if isinstance(at, ast.With) and any(_called_as(item.context_expr) in _RAISES for item in at.items):
            return True
        at = ancestor(path, at, (ast.With, *FUNCTIONS))
    return False


def falls_back(site: Site) -> bool:
    """Whether the statement stands in a `try` of its function, a handler of which returns or sets another value."""
    at: ast.AST | None = statement(site.path, site.line)
    while at is not None:
        at = ancestor(site.path, at, (ast.Try, *FUNCTIONS))
        if not isinstance(at, ast.Try):
            return False
        if at.lineno <= site.line <= (at.body[-1].end_lineno or 0):
            return any(_gives_value(node) for handler in at.handlers for node in ast.walk(handler))
    return False


def _gives_value(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) or (isinstance(node, ast.Return) and node.value is not None)


def _called_as(found: ast.expr) -> str:
    return called(found) if isinstance(found, ast.Call) else ""


def _turns_off(found: ast.expr) -> bool:
    return any(getattr(node, "attr", getattr(node, "id", "")) in _OFF for node in ast.walk(found))


def mentions(path: str, name: str) -> bool:
    """Whether the code of a file uses an attribute or variable of this name for more than to set it up.

    To initialise its weights in a constructor (`self.norm.weight`) is no use; its name in a string is one.
    """
    index = index_of(path)
    for node in all_nodes(path):
        if isinstance(node, ast.Constant) and node.value == name:
            return True
        if getattr(node, "attr", getattr(node, "id", None)) == name and isinstance(
            getattr(node, "ctx", None), ast.Load
        ):
            setup = getattr(ancestor(path, node, FUNCTIONS), "name", "").lstrip("_").startswith(("init", "reset"))
            if not (setup and index and isinstance(index.parent[node], ast.Attribute)):
                return True
    return False


def attribute_set(path: str, cls: str, name: str) -> ast.stmt | None:
    """The statement of class `cls` that first assigns to its attribute `name`."""
    index = index_of(path)
    found = [
        at
        for node in all_nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store) and index
        if isinstance(at := _holding(index, node), (ast.Assign, ast.AnnAssign))
        if getattr(ancestor(path, node, (ast.ClassDef,)), "name", "") == cls
    ]
    return min(found, key=lambda at: at.lineno, default=None)


def _holding(index: Index, node: ast.AST) -> ast.AST:
    """What a target stands in, past the tuple of several."""
    at = index.parent[node]
    return index.parent[at] if isinstance(at, (ast.Tuple, ast.List)) else at


def is_in(path: str, found: ast.stmt, function: str) -> bool:
    """Whether a statement of a file stands in a function of this name."""
    return getattr(ancestor(path, found, FUNCTIONS), "name", "") == function


def set_before(site: Site, name: str) -> int | None:
    """The last line of the function around `site`, before that, which gives `name` a value without a gradient step."""
    before = (node for node in statements_around(site) if isinstance(node, ast.Assign) and node.lineno < site.line)
    lines = [
        node.lineno
        for node in before
        if name in bound(site._replace(line=node.lineno, column=None)) and not _graded(node.value)
    ]
    return max(lines, default=None)


def graded(site: Site) -> str:
    """The variable of the function around `site` whose .grad is read there although nothing makes it require grad; else empty."""
    statements = statements_around(site)
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


def handed_to_call(site: Site) -> tuple[str, str]:
    """The argument that the statement at `site` makes, and what the method is called on, where the statement is a call
    whose result is not used; else empty."""
    found = statement(site.path, site.line, site.column)
    if not isinstance(found, ast.Expr) or not isinstance(found.value, ast.Call) or site.column is None:
        return "", ""
    function = found.value.func
    receiver = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    for argument in (*found.value.args, *(word.value for word in found.value.keywords)):
        begins = (argument.lineno, argument.col_offset)
        ends = (argument.end_lineno or 0, argument.end_col_offset or 0)
        if begins <= (site.line, site.column) < ends:
            return ast.unparse(argument), receiver
    return "", ""


def requires_grad_set(site: Site) -> str:
    """What the statement at `site` sets requires_grad to, `flag` of `p.requires_grad_(flag)`; empty where it sets none."""
    found = statement(site.path, site.line, site.column)
    if isinstance(found, ast.Assign) and isinstance(found.targets[0], ast.Attribute):
        return ast.unparse(found.value) if found.targets[0].attr == "requires_grad" else ""
    calls = [node for node in own_nodes(found) if isinstance(node, ast.Call)] if found else []
    for node in calls:
        given = [*node.args, *(word.value for word in node.keywords)]
        if called(node) == "requires_grad_" and given:
            return ast.unparse(given[0])
    return ""


def given_for(parameter: str, callee: Site, caller: Site) -> str:
    """What the call at `caller` gives for a parameter of the function around `callee`; empty where it gives nothing, or that
    is not its parameter."""
    found, node = call_at(caller), statement(callee.path, callee.line, callee.column)
    function = ancestor(callee.path, node, FUNCTIONS) if node is not None else None
    if found is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]) and isinstance(found.func, ast.Attribute):
        names = names[1:]
    by_place = dict(zip(names, found.args, strict=False))
    by_name = {word.arg: word.value for word in found.keywords}
    value = by_name.get(parameter, by_place.get(parameter))
    return "" if value is None or any(isinstance(one, ast.Starred) for one in found.args) else ast.unparse(value)


def never_read(site: Site) -> bool:
    """Whether the statement at `site` assigns a variable of a function that nothing reads before it is assigned again, or
    the function ends."""
    found = statement(site.path, site.line, site.column)
    index = index_of(site.path)
    if index is None or not isinstance(found, ast.Assign):
        return False
    names = {one.id for one in found.targets if isinstance(one, ast.Name)}
    function = index.parent[found]
    if not all(isinstance(one, ast.Name) for one in found.targets):
        return False
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if found not in function.body:
        return False
    for later in function.body[function.body.index(found) + 1 :]:
        mentions = [node for node in ast.walk(later) if isinstance(node, ast.Name) and node.id in names]
        if isinstance(later, FUNCTIONS) or any(not isinstance(node.ctx, ast.Store) for node in mentions):
            return False
        if mentions:
            return isinstance(later, ast.Assign)
    return True


def never_read_in_script(site: Site) -> bool:
    """Whether the statement at `site` assigns a variable of a script, outside of functions, that nothing in the file reads."""
    found = statement(site.path, site.line, site.column)
    if site.function != "<module>" or not isinstance(found, ast.Assign):
        return False
    names = {one.id for one in found.targets if isinstance(one, ast.Name)}
    return len(names) == len(found.targets) and not any(_may_read(node, names) for node in all_nodes(site.path))


def _may_read(node: ast.AST, names: Collection[str]) -> bool:
    """Whether one of these variables is read here, or by a function that reads them all."""
    if not isinstance(node, ast.Name):
        return False
    return node.id in _READING_ALL or (node.id in names and not isinstance(node.ctx, ast.Store))


def gives_none(path: str, line: int) -> int | None:
    """The last line of the function defined at `line` that returns None, or several values of which one is None."""
    function = statement(path, line)
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
    values = [(node.lineno, node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]) for node in found]
    none = [at for at, parts in values if any(isinstance(one, ast.Constant) and one.value is None for one in parts)]
    return max(none, default=None)


def differentiates_without_graph(path: str, line: int) -> int | None:
    """The line on which the function defined at `line` calls autograd.grad, if it does not turn gradients on anywhere:
    the backward of a custom Function runs with gradients off, and what it computes has no graph."""
    function = statement(path, line)
    nodes = list(ast.walk(function)) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    if any(getattr(node, "attr", getattr(node, "id", "")) in _ON for node in nodes):
        return None
    calls = [node for node in nodes if isinstance(node, ast.Call) and called(node) == "grad"]
    return min((node.lineno for node in calls), default=None)


def called_around(site: Site, name: str) -> int | None:
    """The line of the only call of `name` (`nn.name` as well) in the function around `site`."""
    nodes = (node for found in statements_around(site) for node in ast.walk(found) if isinstance(node, ast.Call))
    lines = {node.lineno for node in nodes if ast.unparse(node.func).rpartition(".")[2] == name}
    return lines.pop() if len(lines) == 1 else None


def listed(site: Site) -> tuple[str, ...]:
    """The variables in lists among the arguments of the calls at `site`: `image` in `Adam([image])`."""
    found = statement(site.path, site.line, site.column)
    lists = [node for node in own_nodes(found) if isinstance(node, ast.List)] if found else []
    return tuple(ast.unparse(one) for node in lists for one in node.elts if isinstance(one, (ast.Name, ast.Attribute)))


def unrequired(site: Site) -> int | None:
    """The first line of the file that makes something that requires no grad: by requires_grad=False, or as embeddings
    that are frozen unless one says freeze=False."""
    return min((node.lineno for node in all_nodes(site.path) if _is_unrequired(node)), default=None)


def _is_unrequired(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    pretrained = ast.unparse(node.func).endswith("Embedding.from_pretrained")
    return words.get("requires_grad") == "False" or (pretrained and words.get("freeze") != "False")
