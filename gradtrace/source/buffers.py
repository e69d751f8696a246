"""Finds in the user's source where NumPy fills an array whose memory a tensor shares: torch sees nothing of that."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradtrace.model.site import Site
from gradtrace.source import syntax

#: how an array's memory comes to be a tensor's, and the reverse
_SHARING = {"from_numpy", "as_tensor", "asarray", "frombuffer"}
_LENDING = {"numpy", "__array__"}
#: functions that write to their first argument, and methods that write to their own array
_FILLING = {"copyto", "put", "place", "putmask", "fill_diagonal", "shuffle"}
_OWN_FILLING = {"fill", "sort", "put", "partition", "itemset"}


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array whose memory a tensor shares: the call that made it so, and the first place that fills it again."""

    name: str
    shared: Site
    filled: Site | None
    #: the tensor was there first: `array = tensor.numpy()`
    lent: bool


def shared_buffer(paths: Iterable[str]) -> Buffer | None:
    """The NumPy array that is shared with a tensor and filled by the user's code, as far as the source shows."""
    nodes = [(node, path, function) for path in paths for node, function in syntax.functions(path)]
    shared = [Buffer(name, _site(*place), None, lent) for place in nodes for name, lent in _shared(place[0])]
    fillings = [(name, _site(*place)) for place in nodes for name in _filled(place[0])]
    for alike in (_same, _same_attribute):
        for buffer in shared:
            places = [site for known, site in fillings if alike(buffer, known, site)]
            if places:
                return replace(buffer, filled=min(places, key=_rank))
    return next(iter(shared), None)


def _same(buffer: Buffer, name: str, filled: Site) -> bool:
    """A local variable is another one in another function."""
    local = "." not in name and filled.function
    return name == buffer.name and (
        not local or (filled.path, filled.function) == (buffer.shared.path, buffer.shared.function)
    )


def _same_attribute(buffer: Buffer, name: str, filled: Site) -> bool:
    """`self.obs` of an environment is `obs` or `env.obs` for whoever runs it."""
    return "." in name and name.rpartition(".")[2] == buffer.name.rpartition(".")[2]


def _rank(site: Site) -> tuple[bool, int]:
    """What is filled while an object is made, or set back for the next run, comes last."""
    name = site.function.rpartition(".")[2].lstrip("_")
    return name.startswith(("init", "reset")), site.line


def _site(node: ast.AST, path: str, function: str) -> Site:
    return Site(path, getattr(node, "lineno", 1), function, getattr(node, "col_offset", None))


def _shared(node: ast.AST) -> list[tuple[str, bool]]:
    """`self.stage` for `torch.from_numpy(self.stage[:n])`, and `view`, lent, for `view = tensor.numpy()`."""
    name, lent = "", isinstance(node, ast.Assign)
    if isinstance(node, ast.Call) and _function(node) in _SHARING and node.args:
        name = _array(node.args[0])
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _function(node.value) in _LENDING:
        name = _array(node.targets[0])
    return [(name, lent)] if name else []


def _filled(node: ast.AST) -> list[str]:
    """The arrays that a statement or call writes to."""
    if isinstance(node, ast.Assign):
        return [_array(target) for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.AugAssign):
        return [_array(node.target)]
    if not isinstance(node, ast.Call):
        return []
    found = [_array(word.value) for word in node.keywords if word.arg == "out"]
    if _function(node) in _FILLING and node.args:
        found.append(_array(node.args[0]))
    if _function(node) in _OWN_FILLING and isinstance(node.func, ast.Attribute):
        found.append(_array(node.func.value))
    return found


def _array(node: ast.expr) -> str:
    """The name or attribute below indices."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _function(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
