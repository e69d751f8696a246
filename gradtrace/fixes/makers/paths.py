"""Edits about paths from the loss to what trains: what cuts them, and what was never asked to require grad."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import FUNCTIONS, Candidate, Place, in_parentheses, name_of, with_keyword, without_keyword

_CUTTING = ("detach", "item", "cpu", "numpy", "tolist", "long", "int", "bool")
_COPYING = ("tensor", "as_tensor", "Tensor", "FloatTensor", "Variable")
_OFF = ("no_grad", "inference_mode")
_FACTORIES = ("randn", "rand", "zeros", "ones", "empty", "full", "tensor", "eye", "arange", "linspace", "normal")
_REQUIRING = re.compile(r"^(.+?)(\.requires_grad = True|\.requires_grad_\((True)?\))$")


def drop_cut(place: Place) -> Iterator[Candidate]:
    """Takes away what cuts the path: one cut alone, then all on these lines, then what hid the error as well."""
    if place.finding.help.startswith("keep the sum as it is"):
        return  # a straight-through estimator
    changes: list[tuple[ast.expr, str]] = []
    for statement in place.around:
        if _only_cuts(place.file, statement):
            yield from place.edit(f"remove `{place.file.source_of(statement)}`", place.file.delete(statement))
            continue
        own = list(_cuts(place.file, statement))
        for node, code, title in own:
            text = place.file.replace(node, code)
            yield from place.edit(title, text)
            yield from _asked_no_more(place, title, text)
            yield from _not_copied_again(place, statement, title, text)
        changes += [(node, code) for node, code, _ in _outermost(own)]
    together = place.file.replace_all(changes) if len(changes) > 1 else None
    yield from place.edit("drop all cuts on these lines", together)
    if together is not None:
        yield from _asked_no_more(place, "drop all cuts on these lines", together)


def _only_cuts(file: SourceFile, statement: ast.stmt) -> bool:
    """`z = z.detach()`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    below = _below_cuts(statement.value)
    return below is not statement.value and file.source(below) == file.source(statement.targets[0])


def _cuts(file: SourceFile, statement: ast.stmt) -> Iterator[tuple[ast.expr, str, str]]:
    """What cuts on this line: the node, what takes its place, and that in words."""
    for node in _own_nodes(statement):
        if isinstance(node, ast.Attribute) and node.attr == "data":
            yield node, file.source(node.value), "drop .data"
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE))
        ):
            left, right = file.source(node.left), file.source(node.comparators[0])
            larger, smaller = (left, right) if isinstance(node.ops[0], (ast.Gt, ast.GtE)) else (right, left)
            yield node, f"torch.sigmoid(({larger} - {smaller}) / 0.1)", "use a smooth step"
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node)
        if name in _CUTTING and isinstance(node.func, ast.Attribute) and not node.args:
            yield node, file.source(_below_cuts(node.func.value)), f"drop .{name}()"
        elif name == "sample" and isinstance(node.func, ast.Attribute):
            value = file.source(node.func.value)
            yield node.func, f"{value}.rsample", "use rsample()"
        elif name in _COPYING and node.args:
            yield from _copies(file, node, name)
        elif name == "round" and isinstance(node.func, ast.Attribute) and not node.args:
            value = file.source(node.func.value)
            yield (
                node,
                f"({value} + ({value}.round() - {value}).detach())",
                "pass the gradient straight through round()",
            )


def _below_cuts(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name_of(node) in _CUTTING:
        node = node.func.value
    return node


def _copies(file: SourceFile, node: ast.Call, name: str) -> Iterator[tuple[ast.expr, str, str]]:
    argument = node.args[0]
    source = in_parentheses(file, _below_cuts(argument))
    if not isinstance(argument, (ast.List, ast.Tuple, ast.ListComp)):
        yield node, source, "use the tensor itself"
    yield node, f"torch.stack({file.source(argument)})", f"use torch.stack instead of {name}()"


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Those of the head, of a statement that has a body."""
    if not getattr(statement, "body", None):
        yield from ast.walk(statement)


def _outermost(found: list[tuple[ast.expr, str, str]]) -> list[tuple[ast.expr, str, str]]:
    kept: list[tuple[ast.expr, str, str]] = []
    inside: set[ast.AST] = set()
    for one in found:  # as walked: the outer ones first
        if one[0] not in inside:
            kept.append(one)
        inside.update(ast.walk(one[0]))
    return kept


def _asked_no_more(place: Place, title: str, text: str) -> Iterator[Candidate]:
    """The same without `loss.requires_grad = True`, which a tensor with a graph does not take."""
    try:
        file = SourceFile(place.file.path, text)
    except (SyntaxError, ValueError):
        return
    for statement in file.statements:
        if isinstance(statement, (ast.Assign, ast.Expr)) and _REQUIRING.match(file.source_of(statement)):
            yield from place.edit(f"{title}, and remove `{file.source_of(statement)}`", file.delete(statement))


def _not_copied_again(place: Place, statement: ast.stmt, title: str, text: str) -> Iterator[Candidate]:
    """The same, and what makes a tensor of that value again goes as well."""
    names = {ast.unparse(one) for one in getattr(statement, "targets", [])}
    for call in place.file.calls(statement, "append"):
        if isinstance(call.func, ast.Attribute):
            names.add(ast.unparse(call.func.value))
    try:
        file = SourceFile(place.file.path, text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(file.tree):
        if (
            isinstance(node, ast.Call)
            and name_of(node) in _COPYING
            and node.args
            and ast.unparse(node.args[0]) in names
        ):
            for code in (file.source(node.args[0]), f"torch.stack({file.source(node.args[0])})"):
                again = file.replace(node, code)
                yield from place.edit(f"{title}, and use `{code}`", again)
                yield from _asked_no_more(place, title, again)


def gradients_on(place: Place) -> Iterator[Candidate]:
    """Where gradients are off: the `with`, the decorator, or set_grad_enabled."""
    for statement in place.around:
        yield from _undecorated(place, statement)
        at: ast.AST | None = statement
        while at is not None:
            if isinstance(at, ast.With) and len(at.items) == 1:
                yield from _with_gradients(place, at)
            at = place.file.around(at, (ast.With,))
        yield from _switched(place, statement)


def _undecorated(place: Place, statement: ast.stmt) -> Iterator[Candidate]:
    at: ast.AST | None = statement
    while at is not None:
        for decorator in getattr(at, "decorator_list", []):
            source = place.file.source(decorator)
            if any(name in source for name in _OFF):
                lines = place.file.lines[:]
                del lines[decorator.lineno - 1 : decorator.end_lineno]
                yield from place.edit(f"remove @{source}", "".join(lines))
        at = place.file.around(at, FUNCTIONS)


def _with_gradients(place: Place, block: ast.With) -> Iterator[Candidate]:
    context = block.items[0].context_expr
    source = place.file.source(context)
    if "inference_mode" in source:
        text = place.file.replace(context, "torch.no_grad()")
        yield from place.edit("use no_grad instead of inference_mode", text)
    if any(name in source for name in _OFF):
        yield from place.edit("compute this with gradients on", place.file.unwrap(block))
    if "set_grad_enabled" in source and isinstance(context, ast.Call) and context.args:
        for inner in ast.walk(block):
            if isinstance(inner, ast.If) and any(place.file.calls(inner, "backward")):
                test = place.file.source(inner.test)
                text = place.file.replace(context.args[0], test)
                yield from place.edit(f"gradients on where `{test}`", text)


def _switched(place: Place, statement: ast.stmt) -> Iterator[Candidate]:
    """`torch.set_grad_enabled(False)` that stays in force."""
    if isinstance(statement, ast.Expr) and any(place.file.calls(statement, "set_grad_enabled")):
        block = place.file.block(statement)
        rest = block[block.index(statement) + 1 :]
        if rest and place.file.around(statement, FUNCTIONS) is not None:
            below = place.file.put_under(rest, "with torch.no_grad():")
            if below is not None:
                edited = SourceFile(place.file.path, below)
                again = edited.statement_at(statement.lineno)
                yield from place.edit(
                    "with torch.no_grad(): around this part alone", edited.delete(again) if again else None
                )
        yield from place.edit("do not switch gradients off", place.file.delete(statement))


def unfreeze(place: Place) -> Iterator[Candidate]:
    """What freezes the parameters on this line."""
    statement = place.statement
    if statement is None:
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign) and place.file.source_of(node).rstrip().endswith(".requires_grad = False"):
            yield from place.edit("leave requires_grad on", place.file.replace(node.value, "True"))
            loop = place.file.around(node, (ast.For,))
            if isinstance(loop, ast.For) and len(loop.body) == 1:
                yield from place.edit("do not freeze them", place.file.delete(loop))
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "requires_grad" and ast.unparse(keyword.value) == "False":
                    code = without_keyword(place.file, node, "requires_grad")
                    yield from place.edit("leave requires_grad on", place.file.replace(node, code or ""))
            if name_of(node) == "from_pretrained":
                text = place.file.replace(node, with_keyword(place.file, node, "freeze=False"))
                yield from place.edit("pass freeze=False", text)
            if name_of(node) == "requires_grad_" and [ast.unparse(one) for one in node.args] == ["False"]:
                yield from place.edit("leave requires_grad on", place.file.replace(node.args[0], "True"))


def require_grad(place: Place) -> Iterator[Candidate]:
    """Asks for gradients where the tensor is made: only where that was never asked, not where a path was cut."""
    if "with requires_grad=True" not in place.finding.help:
        return
    for statement in place.around:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        value = statement.value
        is_made = isinstance(value, ast.Call) and name_of(value) in _FACTORIES
        if isinstance(value, ast.Call) and is_made and all(one.arg != "requires_grad" for one in value.keywords):
            text = place.file.replace(value, with_keyword(place.file, value, "requires_grad=True"))
            yield from place.edit("create it with requires_grad=True", text)
        source = in_parentheses(place.file, value)
        yield from place.edit("call requires_grad_()", place.file.replace(value, f"{source}.requires_grad_()"))
        leaf = f"{source}.detach().clone().requires_grad_()"
        yield from place.edit("make it a leaf that requires grad", place.file.replace(value, leaf))


def require_earlier(place: Place) -> Iterator[Candidate]:
    """`x.requires_grad_()` for what the help names, before these lines."""
    for code in place.snippets():
        name = code.removesuffix(".requires_grad_()")
        if name != code:
            for statement in [*place.related, *place.statements("backward"), *place.around]:
                yield from place.edit(f"call {code}", place.file.insert_before(statement, code))
            yield from place.edit(f"call {code}", place.file.insert_in_body(place.function, code))
            yield from place.edit(f"call {code}", place.file.insert_in_body(place.scope, code))


def leaf_of_result(place: Place) -> Iterator[Candidate]:
    """A result that is used as a leaf becomes one; or keeps its gradient."""
    for statement in place.around:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            value, name = statement.value, place.file.source(statement.targets[0])
            source = in_parentheses(place.file, value)
            kept = place.file.insert_after(statement, f"{name}.retain_grad()")
            if "retain_grad()" in place.finding.help:
                yield from place.edit(f"call {name}.retain_grad()", kept)
            else:
                leaf = f"{source}.detach().requires_grad_()"
                yield from place.edit("make it a leaf", place.file.replace(value, leaf))


def read_later(place: Place) -> Iterator[Candidate]:
    """What reads gradients goes below the backward call that fills them."""
    statement = place.statement
    if statement is None or isinstance(statement, FUNCTIONS):
        return
    for backward in place.statements("backward"):
        pair = place.file.siblings(statement, backward)
        if pair is not None and pair[0].lineno < pair[1].lineno:
            yield from place.edit("use the gradient after the backward call", place.file.move(pair[0], pair[1]))
    for zero in place.statements("zero_grad"):
        if zero.lineno < statement.lineno:
            yield from place.edit("use the gradient before it is cleared", place.file.move(zero, statement))


def into_loss(place: Place) -> Iterator[Candidate]:
    """A loss that is computed and left out is added to the one that is backpropagated."""
    statement = place.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    name = place.file.source(statement.targets[0])
    for later in place.related:
        if isinstance(later, ast.Assign) and place.file.source(later.targets[0]) == name:
            value = in_parentheses(place.file, later.value)
            yield from place.edit(f"add to `{name}`", place.file.replace(later.value, f"{name} + {value}"))
    for backward in [*place.related, *place.statements("backward")]:
        for call in place.file.calls(backward, "backward"):
            if isinstance(call.func, ast.Attribute) and place.file.source(call.func.value) != name:
                root = place.file.source(call.func.value)
                text = place.file.replace(call.func.value, f"({root} + {name})")
                yield from place.edit(f"backpropagate `{root} + {name}`", text)
