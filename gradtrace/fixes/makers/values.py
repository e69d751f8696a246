"""Edits about values: shapes, slopes that are infinite, writes in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import (
    FUNCTIONS,
    LOOPS,
    Candidate,
    Place,
    in_parentheses,
    is_module,
    name_of,
    with_keyword,
    without_keyword,
)

_SOFTMAX = ("softmax", "log_softmax", "sigmoid", "Softmax", "LogSoftmax", "Sigmoid")
_STEEP = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p")
_RECURRENT = (
    "LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
)  # fmt: skip
#: what to call on the tensor of which shape, in a help
_METHOD = re.compile(r"((?:un)?squeeze\(-?\d+\)) the tensor of shape (\[.*?\])")
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


# shapes


def drop_softmax(place: Place) -> Iterator[Candidate]:
    for node in ast.walk(place.file.tree):
        if not isinstance(node, ast.Call) or name_of(node) not in _SOFTMAX:
            continue
        name = name_of(node)
        if name[0].isupper():
            yield from place.edit(f"drop the {name}", place.file.replace(node, "torch.nn.Identity()"))
        elif isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
            yield from place.edit(f"drop {name}()", place.file.replace(node, place.file.source(node.func.value)))
        elif node.args:
            yield from place.edit(f"drop {name}()", place.file.replace(node, place.file.source(node.args[0])))


def match_shapes(place: Place) -> Iterator[Candidate]:
    """Drops or adds the dimension that the help names, at the side of that shape."""
    finding = place.finding
    if place.site is not finding.site or place.statement is None:
        return
    shapes = re.search(r"of shapes (\[.*?\]) and (\[.*?\])", finding.message)
    methods = {shape: method for method, shape in _METHOD.findall(finding.help)}
    for number, side in enumerate(_sides(place, place.statement)):
        method = methods.get(shapes[number % 2 + 1], "") if shapes is not None else ""
        code = f"{in_parentheses(place.file, side)}.{method}"
        yield from place.edit(code, place.file.replace(side, code) if method else None)


def _sides(place: Place, statement: ast.stmt) -> Iterator[ast.expr]:
    """The operands of the operation at the finding's columns; of all of the line where these are not known."""
    for node in ast.walk(statement) if not getattr(statement, "body", None) else ():
        if isinstance(node, (ast.Call, ast.BinOp)) and _is_at(place, node):
            kinds = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
            sides = node.args if isinstance(node, ast.Call) else [node.left, node.right]
            yield from (one for one in sides if isinstance(one, kinds))


def _is_at(place: Place, node: ast.expr) -> bool:
    site = place.site
    return site.column is None or (node.lineno, place.file.column(node)) == (site.line, site.column)


def other_dimension(place: Place) -> Iterator[Candidate]:
    """The same operation along another dimension."""
    if "dim" not in place.finding.help:
        return
    for node in _calls_near(place):
        for keyword in node.keywords:
            if keyword.arg in ("dim", "axis"):
                yield from _dimensions(place, keyword.value)
        for argument in node.args:
            yield from _dimensions(place, argument)


def _dimensions(place: Place, node: ast.expr) -> Iterator[Candidate]:
    try:
        now = ast.literal_eval(node)
    except (ValueError, TypeError):
        return
    if type(now) is int and -4 < now < 4:
        said = [int(one) for one in re.findall(r"dim=(-?\d+)", place.finding.help)]
        for other in dict.fromkeys([*said, -1, 1, 2]):
            if other != now:
                yield from place.edit(f"along dimension {other}", place.file.replace(node, str(other)))


def batch_first(place: Place) -> Iterator[Candidate]:
    """Says where the batch is in the input of a recurrent layer or an attention."""
    if "batch_first" not in place.finding.help:
        return
    for node in ast.walk(place.file.tree):
        if isinstance(node, ast.Call) and name_of(node) in _RECURRENT:
            less = without_keyword(place.file, node, "batch_first")
            if less is None:
                text = place.file.replace(node, with_keyword(place.file, node, "batch_first=True"))
                yield from place.edit("pass batch_first=True", text)
            else:
                yield from place.edit("leave batch_first out", place.file.replace(node, less))


def swap_dimensions(place: Place) -> Iterator[Candidate]:
    """`transpose` for a `view` that only exchanges sizes, and the other of two leading indices."""
    if not any(said in place.finding.help for said in ("transpose", "permute", "out[")):
        return
    for statement in place.around:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and name_of(node) in ("view", "reshape")
                and isinstance(node.func, ast.Attribute)
            ):
                value = in_parentheses(place.file, node.func.value)
                arguments = ", ".join(map(place.file.source, node.args))
                for code in (f"{value}.transpose(0, 1)", f"{value}.transpose(0, 1).reshape({arguments})"):
                    yield from place.edit(code, place.file.replace(node, code))
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                value, index = place.file.source(node.value), place.file.source(node.slice)
                at = index.removeprefix(":,").strip()
                swapped = f"{value}[{at}]" if at != index else f"{value}[:, {index}]"
                yield from place.edit(swapped, place.file.replace(node, swapped))


def _calls_near(place: Place) -> Iterator[ast.Call]:
    for statement in place.around:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node


def _first(node: ast.Call) -> ast.expr | None:
    return node.args[0] if node.args else None


def reduce_loss(place: Place) -> Iterator[Candidate]:
    for statement in place.around:
        for call in place.file.calls(statement, "backward"):
            if isinstance(call.func, ast.Attribute) and not call.args:
                value = in_parentheses(place.file, call.func.value)
                for name in ("mean", "sum"):
                    text = place.file.replace(call.func.value, f"{value}.{name}()")
                    yield from place.edit(f"backward from the {name}", text)
        for call in place.file.calls(statement, "grad"):
            if call.args:
                value = in_parentheses(place.file, call.args[0])
                yield from place.edit("the gradient of the sum", place.file.replace(call.args[0], f"{value}.sum()"))
        for node in ast.walk(statement):
            if isinstance(node, ast.keyword) and node.arg == "reduction" and ast.unparse(node.value) == "'none'":
                yield from place.edit("take the mean", place.file.replace(node.value, '"mean"'))


def fit_gradient(place: Place) -> Iterator[Candidate]:
    """A gradient of the shape of its tensor: what is returned, passed or assigned is transposed or summed."""
    for statement in place.around:
        for call in place.file.calls(statement, "backward"):
            if call.args and isinstance(call.func, ast.Attribute):
                root = place.file.source(call.func.value)
                yield from place.edit("ones_like", place.file.replace(call.args[0], f"torch.ones_like({root})"))
        for node in _given_gradients(statement):
            source = in_parentheses(place.file, node)
            fitting = [f"{source}.{change}" for change in ("t()", "sum(0)", "sum()", "unsqueeze(-1)", "squeeze(-1)")]
            fitting += [f"{source}.{change}" for change in ("sum(-1)", "sum(0, keepdim=True)", "mean()")]
            arguments = place.function.args.args if isinstance(place.function, FUNCTIONS) else []
            fitting += [f"{source}.expand_as({one.arg})" for one in arguments if one.arg != "self"]
            for code in fitting:
                yield from place.edit(code, place.file.replace(node, code))


def _given_gradients(statement: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(statement, (ast.Return, ast.Assign)) and statement.value is not None:
        value = statement.value
        yield from value.elts if isinstance(value, ast.Tuple) else [value]
    for node in ast.walk(statement):
        if isinstance(node, ast.Lambda):
            yield node.body


# slopes


def safe_slope(place: Place) -> Iterator[Candidate]:
    """Keeps the argument of a root or logarithm, or a divisor, away from 0."""
    for statement in place.around:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                own = not is_module(node.func.value)
                value = node.func.value if own else _first(node)
                if value is not None:
                    yield from _safe_call(place, node, value)
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Pow)):
                part = node.right if isinstance(node.op, ast.Div) else node.left
                text = place.file.replace(part, f"({place.file.source(part)} + 1e-8)")
                yield from place.edit("add an epsilon", text)
                clamped = f"{in_parentheses(place.file, part)}.clamp(min=1e-8)"
                yield from place.edit("keep it above 0", place.file.replace(part, clamped))


def _safe_call(place: Place, node: ast.Call, value: ast.expr) -> Iterator[Candidate]:
    name, source = name_of(node), place.file.source(value)
    inside = f"({source} + 1e-8)" if value is not _first(node) else f"{source} + 1e-8"
    if name in _STEEP:
        yield from place.edit(f"add an epsilon before {name}()", place.file.replace(value, inside))
        floor = "min=-1 + 1e-6" if name == "log1p" else "min=1e-8"
        clamped = f"{in_parentheses(place.file, value)}.clamp({floor})"
        yield from place.edit(f"keep the argument of {name}() above 0", place.file.replace(value, clamped))
    limits = {"acos": "-1 + 1e-6, 1 - 1e-6", "asin": "-1 + 1e-6, 1 - 1e-6", "acosh": "min=1 + 1e-6", "exp": "max=80"}
    if name in limits:
        clamped = f"{in_parentheses(place.file, value)}.clamp({limits[name]})"
        yield from place.edit(f"keep the argument of {name}() in its range", place.file.replace(value, clamped))
    if name == "log" and isinstance(value, ast.Call) and name_of(value) == "softmax":
        code = place.file.source(value).replace("softmax", "log_softmax")
        yield from place.edit("use log_softmax", place.file.replace(node, code))
    if name == "std":
        code = place.file.source(node).replace("std", "var", 1)
        yield from place.edit(
            "the root of the variance and an epsilon", place.file.replace(node, f"({code} + 1e-8).sqrt()")
        )


def clip_gradients(place: Place) -> Iterator[Candidate]:
    """Where training diverges: gradients of a limited norm."""
    for statement in place.around:
        for call in place.file.calls(statement, "step"):
            for made in ast.walk(place.file.tree):
                if isinstance(made, ast.Call) and made.args and "optim" in place.file.source(made.func):
                    code = f"torch.nn.utils.clip_grad_norm_({place.file.source(made.args[0])}, 1.0)"
                    if isinstance(call.func, ast.Attribute):
                        yield from place.edit("clip the gradients", place.file.insert_before(statement, code))


# writes in place


def out_of_place(place: Place) -> Iterator[Candidate]:
    """Writes to a new tensor instead of in place."""
    for statement in place.around:
        yield from _statement_out_of_place(place, statement)
        for node in ast.walk(statement):
            yield from _node_out_of_place(place, statement, node)
    for node in ast.walk(place.file.tree):
        if isinstance(node, ast.keyword) and node.arg == "inplace" and ast.unparse(node.value) == "True":
            yield from place.edit("not in place", place.file.replace(node.value, "False"))


def _statement_out_of_place(place: Place, statement: ast.stmt) -> Iterator[Candidate]:
    if isinstance(statement, ast.AugAssign):
        target, value = place.file.source(statement.target), in_parentheses(place.file, statement.value)
        sign = _SIGNS.get(type(statement.op), "")
        if sign and not isinstance(statement.target, ast.Subscript):
            text = place.file.replace_statement(statement, f"{target} = {target} {sign} {value}")
            yield from place.edit(f"make a new `{target}`", text)
    written = _written(place.file, statement)
    for name in written:
        text = place.file.insert_before(statement, f"{name} = {name}.clone()")
        yield from place.edit(f"write to a copy of `{name}`", text)
    for name in written:
        for other in place.related:
            yield from _copied(place, other, name)


def _written(file: SourceFile, statement: ast.stmt) -> list[str]:
    """The variables that a statement writes into."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    found = [
        file.source(_base(one))
        for one in targets
        if isinstance(one, ast.Subscript) or isinstance(statement, ast.AugAssign)
    ]
    nodes = ast.walk(statement) if not getattr(statement, "body", None) else ()
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and is_in_place(node.func)]
    found += [file.source(_base(function.value)) for function in calls]
    return list(dict.fromkeys(found))


def _base(node: ast.expr) -> ast.expr:
    """`x` of `x[0]` and of `x.data`."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    return node


def _copied(place: Place, statement: ast.stmt, name: str) -> Iterator[Candidate]:
    """The statement that saved the tensor gets a copy."""
    root = name.split(".")[0].split("[")[0]
    for node in ast.walk(statement) if not getattr(statement, "body", None) else ():
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            source = place.file.source(node)
            if source == name or (source.startswith(root) and not isinstance(place.file.parent(node), ast.Attribute)):
                yield from place.edit(
                    f"compute with a copy of `{source}`", place.file.replace(node, f"{source}.clone()")
                )


def _node_out_of_place(place: Place, statement: ast.stmt, node: ast.AST) -> Iterator[Candidate]:
    if isinstance(node, ast.Call) and is_in_place(node.func):
        target = place.file.source(node.func.value)
        arguments = ", ".join(place.file.source(one) for one in [*node.args, *(k.value for k in node.keywords)])
        made = f"{target}.{node.func.attr.rstrip('_')}({arguments})"
        alone = isinstance(statement, ast.Expr) and statement.value is node
        text = place.file.replace(node, f"{target} = {made}" if alone else made)
        yield from place.edit(f"make a new `{target}`", text)
    if isinstance(node, ast.Call):
        outs = [one for one in node.keywords if one.arg == "out"]
        code = without_keyword(place.file, node, "out")
        if outs and code and isinstance(statement, ast.Expr):
            target = place.file.source(outs[0].value)
            yield from place.edit(f"make a new `{target}`", place.file.replace(node, f"{target} = {code}"))
        for argument in node.args:
            if isinstance(argument, ast.Constant) and argument.value is True:
                yield from place.edit("not in place", place.file.replace(argument, "False"))


def is_in_place(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and re.fullmatch(r"[a-z]\w*[a-z0-9]_", node.attr) is not None


def copy_saved(place: Place) -> Iterator[Candidate]:
    """What an operation saves is a copy of what is written to later."""
    for statement in place.around:
        for node in ast.walk(statement) if not getattr(statement, "body", None) else ():
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                parent = place.file.parent(node)
                if (isinstance(parent, ast.Call) and node in parent.args) or not isinstance(
                    parent, (ast.Attribute, ast.Call)
                ):
                    source = place.file.source(node)
                    yield from place.edit(f"copy `{source}`", place.file.replace(node, f"{source}.clone()"))


def write_later(place: Place) -> Iterator[Candidate]:
    """The write, with the block around it, after the backward call that needs the old values; or before what saves."""
    statement = place.statement
    orders = ("after the backward call", "backward before this", "before the forward")
    if statement is None or not any(order in place.finding.help for order in orders):
        return
    for other in place.related:
        pair = place.file.siblings(statement, other)
        if pair is not None and pair[0].lineno < pair[1].lineno and not isinstance(pair[0], (*LOOPS, *FUNCTIONS)):
            yield from place.edit("write after the backward call", place.file.move(pair[0], pair[1]))
        elif pair is not None and pair[1].lineno < pair[0].lineno:
            yield from place.edit("write before this", place.file.move_before(pair[0], pair[1]))


def write_detached(place: Place) -> Iterator[Candidate]:
    """A view that only serves to write values is made of the tensor without its graph."""
    for statement in place.related:
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not is_module(value.func.value):
            source = place.file.source(value.func.value)
            yield from place.edit(
                f"write through {source}.detach()", place.file.replace(value.func.value, f"{source}.detach()")
            )


def out_of_place_by_help(place: Place) -> Iterator[Candidate]:
    """Not for a leaf: a new tensor in its place would be trained no more."""
    if "out of place" in place.finding.help:
        yield from out_of_place(place)


def without_gradients(place: Place) -> Iterator[Candidate]:
    if place.statement is not None and not isinstance(place.statement, FUNCTIONS):
        text = place.file.put_under([place.statement], "with torch.no_grad():")
        yield from place.edit("with gradients off", text)
