"""Faults that keep graphs, enter old ones, or overwrite what they saved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Edit, Fault
from mutants.operators.base import (
    backwards,
    backwards_near,
    function_name,
    live_expressions,
    method,
    operator,
    optimizers,
    want,
)
from mutants.source import Program

#: operations that save their output for the backward pass
_SAVE_OUTPUT = "relu", "sigmoid", "tanh", "exp", "softmax", "sqrt", "log_softmax"
#: the modes of a model that is never seen in training mode
_EVALUATION = 2
#: those whose gradient is computed from the output: of relu only the sign matters
_USE_OUTPUT = "sigmoid", "tanh", "exp", "softmax", "sqrt", "log_softmax"


@operator("late", "some")
def retain_graph(program: Program) -> Iterator[Fault]:
    """backward keeps a graph that nothing uses again."""
    for backward in backwards(program):
        if _has_no_arguments(backward):
            text = program.source(backward).removesuffix("()") + "(retain_graph=True)"
            wants = want("unneeded-retain", "graph-growth")
            yield Fault((program.replace(backward, HERE + text),), (wants,), line=backward.lineno)


@operator("late", "some")
def create_graph(program: Program) -> Iterator[Fault]:
    """backward makes gradients that have a graph, which nothing uses."""
    for backward in backwards(program):
        if _has_no_arguments(backward):
            text = program.source(backward).removesuffix("()") + "(create_graph=True)"
            wants = want("unneeded-retain", "graph-growth")
            yield Fault((program.replace(backward, HERE + text),), (wants,), line=backward.lineno)


def _has_no_arguments(backward: ast.Expr) -> bool:
    call = backward.value
    return isinstance(call, ast.Call) and not call.args and not call.keywords


@operator("late", "some")
def drop_retain_graph(program: Program) -> Iterator[Fault]:
    """retain_graph=True is dropped where another call uses the graph."""
    for call in program.calls():
        for keyword in call.keywords:
            if keyword.arg == "retain_graph":
                others = [
                    c for c in program.calls() if method(c) == "grad" and program.function(c) is program.function(call)
                ]
                wants = want("freed-graph", at=(*backwards_near(program, call), *others, call))
                yield Fault((program.replace(keyword.value, HERE + "False"),), (wants,), line=call.lineno)


@operator("late", "some")
def keep_loss(program: Program) -> Iterator[Fault]:
    """The loss itself is kept instead of its number."""
    for call in program.calls():
        if method(call) != "item" or not isinstance(call.func, ast.Attribute):
            continue
        fact = program.fact(call.func.value)
        if fact and fact.kind == "tensor":
            wants = want("graph-growth", "unused-graph", "freed-graph")
            yield Fault(
                (program.replace(call, HERE + program.source(call.func.value)),),
                (wants,),
                raises=False,
                line=call.lineno,
            )


@operator("late", "some")
def list_of_losses(program: Program) -> Iterator[Fault]:
    """Losses are put into a list, with their graphs."""
    for backward in backwards(program):
        assert isinstance(backward.value, ast.Call)
        assert isinstance(backward.value.func, ast.Attribute)
        loss = backward.value.func.value
        if isinstance(loss, ast.Name):
            edits = (
                program.after(backward, f"{HERE}loss_history.append({loss.id})"),
                program.define("loss_history = []"),
            )
            yield Fault(edits, (want("graph-growth"),), line=backward.lineno)


@operator("late", "some")
def moving_average_of_loss(program: Program) -> Iterator[Fault]:
    """A moving average of the loss keeps the graphs of all iterations, in a helper."""
    helper = (
        "averages = {}",
        "",
        "",
        "def track(name, value):",
        f"    {HERE}averages[name] = 0.9 * averages.get(name, 0.0) + 0.1 * value",
    )
    for backward in backwards(program):
        assert isinstance(backward.value, ast.Call)
        assert isinstance(backward.value.func, ast.Attribute)
        loss = backward.value.func.value
        if isinstance(loss, ast.Name):
            edits = program.after(backward, f"{HERE}track({loss.id!r}, {loss.id})"), program.define(*helper)
            yield Fault(edits, (want("graph-growth"),), line=backward.lineno)


@operator("late", "some")
def drop_detach(program: Program) -> Iterator[Fault]:
    """A detach() is dropped: of a fake, a hidden state, a loss of another optimizer.

    With one optimizer and without an exception there is no fact that tells it from a loss that is meant so.
    """
    needs = "values" if len(optimizers(program)) > 1 else "raises"
    for call in program.calls():
        if method(call) == "detach" and isinstance(call.func, ast.Attribute) and program.fact(call):
            edit = program.replace(call, HERE + program.source(call.func.value))
            rules = (
                "freed-graph",
                "graph-growth",
                "attached-target",
                "repeated-backward",
                "inplace-saved",
                "unoptimized-parameter",
            )
            leaks = want("leaked-grad", "stale-grad", "freed-graph", at=backwards_near(program, call))
            carried = want(*rules, at=tuple(_uses(program, call)))
            yield Fault((edit,), (carried, leaks), needs=needs, line=call.lineno)


def _uses(program: Program, call: ast.Call) -> list[ast.AST]:
    """The calls of the function that has the dropped detach: a helper's caller may be blamed too."""
    inside = program.function(call)
    if not isinstance(inside, ast.FunctionDef) or inside.name in ("forward", "__init__"):
        return []
    return [c for c in program.calls() if function_name(c) == inside.name and program.function(c) is not inside]


@operator()
def drop_no_grad(program: Program) -> Iterator[Fault]:
    """torch.no_grad() is dropped: from an evaluation, a target, an update."""
    for node in program.walk():
        if isinstance(node, ast.With) and _turns_off(program, node.items[0].context_expr):
            inside: tuple[ast.AST, ...] = tuple(s for b in node.body for s in ast.walk(b) if isinstance(s, ast.stmt))
            if not program.has_own_lines(node):
                continue
            edits = (_without_block(program, node),)
        elif isinstance(node, ast.FunctionDef) and any(_turns_off(program, d) for d in node.decorator_list):
            inside = tuple(s for b in node.body for s in ast.walk(b) if isinstance(s, ast.stmt))
            decorator = node.decorator_list[0]
            edits = (_without_decorator(program, decorator),)
        else:
            continue
        calls = [n for s in inside for n in ast.walk(s) if isinstance(n, ast.Call) and program.kind(n.func) == "module"]
        runs = sum(f.count for f in (program.fact(c.func) for c in calls) if f and f.modes == _EVALUATION)
        methods = tuple(n for s in inside for n in ast.walk(s) if isinstance(n, ast.Call))
        rules = (
            "unused-graph",
            "graph-growth",
            "attached-target",
            "freed-graph",
            "inplace-leaf",
            "inplace-saved",
            "hidden-write",
        )
        where: tuple[ast.AST, ...] = (*inside, *methods)
        wants = want(*rules, at=where), want("leaked-grad", "stale-grad", at=tuple(backwards(program)), here=False)
        needs = "any" if runs >= 4 and not _in_training(program, node) else "values"
        yield Fault(edits, wants, needs=needs, line=node.lineno)


def _without_block(program: Program, block: ast.With) -> Edit:
    """The statements of the block, as far out as the block was."""
    lines = program.text[program.line_start(block.body[0]) : program.line_end(block)].splitlines(keepends=True)
    text = "".join(HERE + line.removeprefix("    ") for line in lines)
    return Edit(program.line_start(block), program.line_end(block), text, block)


def _without_decorator(program: Program, decorator: ast.expr) -> Edit:
    start = program.text.rfind("\n", 0, program.start(decorator)) + 1
    end = program.text.find("\n", program.end(decorator)) + 1
    return Edit(start, end, "")


def _turns_off(program: Program, node: ast.expr) -> bool:
    text = program.source(node)
    return text in ("torch.no_grad()", "torch.inference_mode()", "no_grad()")


def _in_training(program: Program, node: ast.AST) -> bool:
    """Whether the function around it also calls backward: what runs there may be part of a loss."""
    return any(program.function(b) is program.function(node) for b in backwards(program))


@operator("late", "some")
def write_to_saved(program: Program) -> Iterator[Fault]:
    """An activation that the backward pass needs is scaled in place."""
    for statement in program.statements():
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value, fact = statement.value, program.fact(statement.value)
            if (
                isinstance(value, ast.Call)
                and function_name(value) in _SAVE_OUTPUT
                and fact
                and fact.live
                and fact.shape
            ):
                line = f"{HERE}{statement.targets[0].id} *= 0.9"
                yield Fault(
                    (program.after(statement, line),), (want("inplace-saved"),), needs="values", line=statement.lineno
                )


@operator("late", "some")
def write_in_helper(program: Program) -> Iterator[Fault]:
    """A helper scales in place what the backward pass needs."""
    helper = "def shrink(value):", f"    {HERE}value.mul_(0.5)", "    return value"
    for node in live_expressions(program):
        fact = program.fact(node)
        if isinstance(node, ast.Call) and function_name(node) in _SAVE_OUTPUT and fact and fact.shape and not fact.leaf:
            edits = program.replace(node, f"{HERE}shrink({program.source(node)})"), program.define(*helper)
            yield Fault(edits, (want("inplace-saved"),), needs="values", line=node.lineno)


@operator("late", "some")
def hidden_write(program: Program) -> Iterator[Fault]:
    """What the backward pass needs is scaled through .data, which torch does not notice."""
    for statement in program.statements():
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value, fact = statement.value, program.fact(statement.value)
            if (
                isinstance(value, ast.Call)
                and function_name(value) in _USE_OUTPUT
                and fact
                and fact.live
                and fact.shape
            ):
                line = f"{HERE}{statement.targets[0].id}.data.mul_(0.5)"
                yield Fault(
                    (program.after(statement, line),), (want("hidden-write"),), needs="values", line=statement.lineno
                )


@operator("late", "some")
def weight_decay_in_place(program: Program) -> Iterator[Fault]:
    """A parameter is scaled in place, with gradients on."""
    for backward in backwards(program):
        for node in program.calls():
            fact = program.fact(node.func)
            statement = program.statement(node)
            if fact and fact.kind == "module" and fact.layers and program.body(statement) is program.body(backward):
                lines = (
                    f"{HERE}for weight in {program.source(node.func)}.parameters():",
                    f"    {HERE}weight.mul_(0.999)",
                )
                yield Fault(
                    (program.before(statement, *lines),),
                    (want("inplace-leaf", "inplace-saved"),),
                    needs="raises",
                    line=statement.lineno,
                )
