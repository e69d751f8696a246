"""Faults in what a loss is computed from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Fault
from mutants.operators.base import (
    backwards,
    bracketed,
    function_name,
    gradient_calls,
    live_expressions,
    method,
    operator,
    want,
)
from mutants.source import Program

_LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "nll_loss",
)
_MODULES = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss")


def _module_type(program: Program, call: ast.Call) -> str:
    """The class of the module that a call calls."""
    fact = program.fact(call.func)
    if fact and fact.kind == "module":
        return fact.type
    return ""


def _losses(program: Program) -> list[ast.Call]:
    """The calls of a loss through which gradients flow."""
    found = []
    for call in program.calls():
        fact = program.fact(call)
        if _is_loss(program, call) and fact and fact.live and program.has_own_lines(program.statement(call)):
            found.append(call)
    return found


@operator("late", "some")
def softmax_before_loss(program: Program) -> Iterator[Fault]:
    """Softmax goes into cross_entropy, or sigmoid into a loss with logits."""
    for call in _losses(program):
        name = function_name(call)
        kind = _module_type(program, call)
        text = bracketed(program, call.args[0])
        if _takes_scores(program, call):
            text = f"{text}.softmax(-1)"
        elif name.endswith("with_logits") or kind == "BCEWithLogitsLoss":
            text = f"{text}.sigmoid()"
        else:
            continue
        yield Fault(
            (program.replace(call.args[0], HERE + text),), (want("double-softmax"),), needs="values", line=call.lineno
        )


@operator()
def softmax_at_the_end_of_forward(program: Program) -> Iterator[Fault]:
    """The last layer's scores leave forward as probabilities, and cross_entropy takes them."""
    scoring = {_made_by(program, call.args[0]) for call in _losses(program) if _takes_scores(program, call)}
    for node in program.walk():
        inside = program.parent(node)
        if not isinstance(node, ast.FunctionDef) or node.name != "forward" or not isinstance(inside, ast.ClassDef):
            continue
        for result in ast.walk(node):
            value = result.value if isinstance(result, ast.Return) else None
            fact = program.fact(value) if value is not None else None
            if isinstance(value, ast.Call) and fact and fact.live and inside.name in scoring:
                edit = program.replace(value, f"{HERE}torch.softmax({program.source(value)}, dim=-1)")
                yield Fault((edit,), (want("double-softmax"),), needs="values", line=value.lineno)


def _takes_scores(program: Program, call: ast.Call) -> bool:
    return function_name(call) == "cross_entropy" or _module_type(program, call) == "CrossEntropyLoss"


def _made_by(program: Program, scores: ast.expr) -> str:
    """The class of the module that is called for these scores, here or where the name is assigned."""
    if isinstance(scores, ast.Call):
        return _module_type(program, scores)
    for node in program.walk():
        if isinstance(node, ast.Assign) and program.function(node) is program.function(scores):
            same = program.source(node.targets[0]) == program.source(scores)
            if same and isinstance(node.value, ast.Call):
                return _module_type(program, node.value)
    return ""


@operator("late", "some")
def drop_squeeze(program: Program) -> Iterator[Fault]:
    """A column is not squeezed, so that the two sides of the loss broadcast."""
    for call in program.calls():
        if isinstance(call.func, ast.Attribute) and _drops_a_column(program, call, call.func.value):
            edit = program.replace(call, HERE + program.source(call.func.value))
            wants = want("broadcast-loss", at=_pairings(program))
            yield Fault((edit,), (wants,), needs="values", raises=False, line=call.lineno)


def _drops_a_column(program: Program, call: ast.Call, inner: ast.expr) -> bool:
    """squeeze, flatten, or a view of [n, 1] as [n]."""
    before, after = program.fact(inner), program.fact(call)
    if not before or not after or call.func is inner:
        return False
    if method(call) in ("squeeze", "flatten"):
        return True
    return method(call) == "view" and len(before.shape) == 2 and before.shape[1] == 1 and len(after.shape) == 1


def _pairings(program: Program) -> tuple[ast.AST, ...]:
    """Where two sides of a loss meet: calls of a loss, and differences."""
    return tuple(node for node in program.walk() if _is_loss(program, node) or _is_difference(program, node))


def _is_loss(program: Program, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return function_name(node) in _LOSSES or _module_type(program, node) in _MODULES


def _is_difference(program: Program, node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and program.kind(node) == "tensor"


@operator("late", "some")
def loss_without_reduction(program: Program) -> Iterator[Fault]:
    """A loss is not reduced to a number."""
    for call in _losses(program):
        if isinstance(call.func, ast.Attribute | ast.Name) and function_name(call) in _LOSSES:
            keywords = [k for k in call.keywords if k.arg == "reduction"]
            if not keywords:
                text = program.source(call)[:-1] + ', reduction="none")'
                edit = program.replace(call, HERE + text)
                wants = want("nonscalar-backward", at=(*backwards(program), *gradient_calls(program)))
                yield Fault((edit,), (wants,), needs="raises", line=call.lineno)


@operator("late", "some")
def drop_mean(program: Program) -> Iterator[Fault]:
    """The mean at the end of a loss is forgotten."""
    for call in program.calls():
        fact = program.fact(call)
        if method(call) == "mean" and isinstance(call.func, ast.Attribute) and not call.args and fact and fact.live:
            before = program.fact(call.func.value)
            if before and before.kind == "tensor" and before.shape:
                edit = program.replace(call, HERE + program.source(call.func.value))
                wants = want("nonscalar-backward", at=(*backwards(program), *gradient_calls(program)))
                yield Fault((edit,), (wants,), needs="raises", line=call.lineno)


@operator()
def softmax_over_batch(program: Program) -> Iterator[Fault]:
    """Softmax runs over the first dimension instead of the last."""
    for call in program.calls():
        fact = program.fact(call)
        if function_name(call) in ("softmax", "log_softmax") and fact and fact.live and len(fact.shape) > 1:
            for keyword in call.keywords:
                if keyword.arg == "dim":
                    edit = program.replace(keyword.value, HERE + "0")
                    yield Fault((edit,), (want("mixed-batch", at=(call,)),), needs="values", line=call.lineno)


@operator()
def time_for_batch(program: Program) -> Iterator[Fault]:
    """batch_first=True is forgotten at a recurrent network."""
    used = tuple(
        c
        for c in program.calls()
        if _module_type(program, c) in ("LSTM", "GRU", "RNN", "MultiheadAttention") and program.fact(c)
    )
    for call in program.calls():
        for keyword in call.keywords:
            if keyword.arg == "batch_first" and program.source(keyword.value) == "True":
                edit = program.replace(keyword.value, HERE + "False")
                yield Fault((edit,), (want("mixed-batch", at=used),), needs="values", raises=False, line=call.lineno)


@operator("late", "some")
def signed_square_root(program: Program) -> Iterator[Fault]:
    """The signed square root of an activation that is 0 for some: its slope there is infinite."""
    for call in program.calls():
        fact = program.fact(call)
        if function_name(call) == "relu" and fact and fact.kind == "tensor" and fact.live:
            edits = program.replace(call, f"{HERE}signed_sqrt({program.source(call)})"), program.define(*_SIGNED_ROOT)
            yield Fault(edits, (want("nonfinite-grad"),), needs="nonfinite", line=call.lineno)


_SIGNED_ROOT = "def signed_sqrt(value):", f"    {HERE}return torch.sign(value) * torch.sqrt(torch.abs(value))"


@operator("late", "some")
def masked_square_root(program: Program) -> Iterator[Fault]:
    """torch.where selects around the root of what is not positive: the value is right, the gradient is NaN."""
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and not fact.leaf and len(fact.shape) > 1 and isinstance(node, ast.Name | ast.Call):
            text = bracketed(program, node)
            edit = program.replace(node, f"{HERE}torch.where({text} > 0, torch.sqrt({text}), {text})")
            yield Fault((edit,), (want("nonfinite-grad"),), needs="nonfinite", line=node.lineno)


@operator("late", "some")
def divided_by_zero_norm(program: Program) -> Iterator[Fault]:
    """A value is divided by the norm of a difference that is 0."""
    helper = (
        "def direction(value):",
        f"    {HERE}offset = value - value.detach()",
        f"    {HERE}return value + offset / {HERE}offset.norm()",
    )
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and not fact.leaf and len(fact.shape) > 1 and isinstance(node, ast.Name | ast.Call):
            edits = program.replace(node, f"{HERE}direction({program.source(node)})"), program.define(*helper)
            yield Fault(edits, (want("nonfinite-grad"),), needs="nonfinite", line=node.lineno)


@operator()
def backpropagate_one_term(program: Program) -> Iterator[Fault]:
    """Of a sum of losses one term is forgotten: it is computed and never used."""
    for node in program.walk():
        fact = program.fact(node)
        if (
            not isinstance(node, ast.BinOp)
            or not isinstance(node.op, ast.Add)
            or not fact
            or not fact.live
            or not fact.scalar
        ):
            continue
        for kept, lost in ((node.left, node.right), (node.right, node.left)):
            names = {n.id for n in ast.walk(lost) if isinstance(n, ast.Name)}
            loss = program.fact(lost)
            if not loss or not loss.live or not loss.scalar or not isinstance(lost, ast.Name | ast.BinOp):
                continue
            made = [
                s
                for s in program.statements()
                if isinstance(s, ast.Assign)
                and program.function(s) is program.function(node)
                and {n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name)} & names
            ]
            if made:
                edit = program.replace(node, HERE + program.source(kept))
                wants = want("unused-loss", "unreached-parameter", at=tuple(made))
                yield Fault((edit,), (wants,), needs="values", line=node.lineno)
