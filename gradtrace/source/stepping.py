"""Questions about where a method such as `step` is called, and what decides whether it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradtrace.model.site import Site
from gradtrace.source import syntax


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call `receiver.step(...)` in the source."""

    line: int
    receiver: str
    #: the line of the nearest `if` of the same function around it, 0 where there is none, and the `if`'s condition
    guard: int = 0
    condition: str = ""


def step_calls(path: str) -> tuple[StepCall, ...]:
    """The calls of a method named `step` in a file, top to bottom. Environments of reinforcement learning have one, too:
    theirs takes an action."""
    return tuple(sorted(_calls(path), key=lambda call: call.line))


def _calls(path: str) -> Iterator[StepCall]:
    index = syntax.index_of(path)
    for node in index.parent if index else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "step":
            continue
        receiver = ast.unparse(node.func.value)
        guard = syntax.ancestor(path, node, (ast.If, *syntax.FUNCTIONS))
        if isinstance(guard, ast.If):
            yield StepCall(node.lineno, receiver, guard.lineno, ast.unparse(guard.test))
        else:
            yield StepCall(node.lineno, receiver)


def is_scheduler(receiver: str) -> bool:
    """Whether something is called like a learning rate scheduler rather than an optimizer."""
    return any(word in receiver.lower() for word in ("sched", "warmup", "plateau"))


def given_name(path: str, line: int) -> str:
    """The variable or attribute that the statement on a line gives its value to: `opt` for `opt = Adam(...)`."""
    found = syntax.statement(path, line)
    if isinstance(found, ast.Assign) and len(found.targets) == 1 and isinstance(found.value, ast.Call):
        return ast.unparse(found.targets[0])
    return ""


def is_handed_on(path: str, name: str, line: int) -> bool:
    """Whether a variable is used on another line than `line` other than to call a method of it that returns a rate."""
    index = syntax.index_of(path)
    for node in index.parent if index else ():
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and node.lineno != line:
            parent = index.parent.get(node) if index else None
            reads = isinstance(parent, ast.Attribute) and parent.attr in ("get_last_lr", "last_epoch")
            if ast.unparse(node) == name and not reads:
                return True
    return False


def attribute_lines(path: str, name: str, own: bool) -> list[int]:
    """The lines that give a value to an attribute of this name, with setattr as well; of `self` itself only with `own`."""
    index = syntax.index_of(path)
    lines: set[int] = set()
    for node in index.parent if index else ():
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
            if own or ast.unparse(node.value) != "self":
                lines.add(node.lineno)
        elif isinstance(node, ast.Call) and syntax.called(node) == "setattr" and _names(node, name):
            lines.add(node.lineno)
    return sorted(lines)


def _names(call: ast.Call, text: str) -> bool:
    return any(isinstance(one, ast.Constant) and one.value == text for one in call.args)


def divided_by(site: Site, root: str) -> str:
    """What the loss of a backward call is divided by, if that is one name, attribute or number that the loop around the
    call does not set; else empty."""
    values = [root] if root else []
    for found in syntax.statements_around(site):
        if found.lineno > site.line:
            continue
        if isinstance(found, ast.AugAssign) and ast.unparse(found.target) == root and isinstance(found.op, ast.Div):
            values.append(f"{root} / {ast.unparse(found.value)}")
        elif isinstance(found, ast.Assign) and ast.unparse(found.targets[0]) == root:
            values.append(ast.unparse(found.value))
    for value in values:
        divisor = _divisor(value)
        if divisor:
            return "" if _is_set_in_loop(site, divisor) else divisor
    return ""


def _is_set_in_loop(site: Site, name: str) -> bool:
    """Whether the innermost loop around a line gives a variable or attribute its value: another each time, it may be."""
    loop = syntax.loop(site.path, site.line)
    for node in ast.walk(loop) if loop else ():
        if (
            isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node) == name
        ):
            return True
    return False


def _divisor(text: str) -> str:
    try:
        value = ast.parse(text, mode="eval").body
    except SyntaxError:
        return ""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        plain = isinstance(value.right, (ast.Name, ast.Attribute, ast.Constant))
        return ast.unparse(value.right) if plain else ""
    return ""
