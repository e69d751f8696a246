"""Faults that cut the path from a parameter to the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Fault, Want
from mutants.operators.base import alias, bracketed, gradient_calls, live_expressions, method, operator, want
from mutants.source import Program

#: what a cut may be reported as, at the cut
CUT = "no-graph", "unreached-parameter", "dead-loss-term", "unused-loss", "zero-gradient", "step-without-grad"


def _cut(program: Program, node: ast.expr, text: str, helper: tuple[str, ...] = (), note: str = "") -> Fault:
    edits = [program.replace(node, HERE + text)]
    if helper:
        edits.append(program.define(*helper))
    return Fault(tuple(edits), _cut_wants(program), needs="starved", note=note, line=node.lineno)


def _cut_wants(program: Program, *at: ast.AST) -> tuple[Want, ...]:
    """A cut is found at the cut, or where autograd.grad finds no path any more."""
    return want(*CUT, at=at), want("unused-input", at=(*at, *gradient_calls(program)))


@operator("late")
def detach_on_path(program: Program) -> Iterator[Fault]:
    """A value is detached on the path to the loss."""
    for node in live_expressions(program):
        yield _cut(program, node, f"{bracketed(program, node)}.detach()")


@operator("late")
def data_on_path(program: Program) -> Iterator[Fault]:
    """A value's .data goes on to the loss."""
    for node in live_expressions(program):
        yield _cut(program, node, f"{bracketed(program, node)}.data")


@operator("late")
def detach_in_helper(program: Program) -> Iterator[Fault]:
    """A value goes through a helper that detaches it."""
    helper = "def as_constant(value):", f"    {HERE}return value.detach()"
    for node in live_expressions(program):
        yield _cut(program, node, f"as_constant({program.source(node)})", helper)


@operator("late")
def detach_and_require_grad(program: Program) -> Iterator[Fault]:
    """A value is detached and made to require grad, so that no error is raised."""
    for node in live_expressions(program):
        yield _cut(program, node, f"{bracketed(program, node)}.detach().requires_grad_()")


@operator("late")
def no_grad_on_path(program: Program) -> Iterator[Fault]:
    """A value on the path to the loss is computed under torch.no_grad()."""
    yield from _under(program, "torch.no_grad()")


@operator("late")
def inference_mode_on_path(program: Program) -> Iterator[Fault]:
    """A value on the path to the loss is computed in inference mode."""
    yield from _under(program, "torch.inference_mode()")


def _under(program: Program, manager: str) -> Iterator[Fault]:
    for statement in program.statements():
        if not isinstance(statement, ast.Assign) or not any(
            program.kind(n) == "tensor" for n in ast.walk(statement.value)
        ):
            continue
        facts = [program.fact(n) for n in ast.walk(statement.value)]
        if any(f and f.kind == "tensor" and f.live and not f.leaf for f in facts):
            edit = program.wrap(statement, f"with {manager}:")
            yield Fault((edit,), _cut_wants(program), needs="starved", line=statement.lineno)


@operator()
def no_grad_function(program: Program) -> Iterator[Fault]:
    """A function on the path to the loss is decorated with torch.no_grad()."""
    for node in program.walk():
        if not isinstance(node, ast.FunctionDef) or node.decorator_list:
            continue
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
        facts = [program.fact(v) for r in returns for v in ast.walk(r) if program.function(r) is node]
        if any(f and f.kind == "tensor" and f.live for f in facts):
            decorator = program.before(node, HERE + "@torch.no_grad()")
            yield Fault((decorator,), _cut_wants(program, node), needs="starved", line=node.lineno)


@operator("late")
def numpy_round_trip(program: Program) -> Iterator[Fault]:
    """A value goes through NumPy on the path to the loss."""
    for node in live_expressions(program):
        yield _cut(program, node, f"torch.from_numpy({bracketed(program, node)}.detach().numpy())")


@operator("late")
def rebuilt_by_helper(program: Program) -> Iterator[Fault]:
    """A value is copied into a new tensor by a helper."""
    helper = "def copied(value):", f"    {HERE}return torch.tensor(value.tolist(), dtype=value.dtype)"
    for node in live_expressions(program):
        yield _cut(program, node, f"copied({program.source(node)})", helper)


@operator("late")
def loss_from_its_number(program: Program) -> Iterator[Fault]:
    """A loss is made again from its number, and requires grad."""
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and fact.scalar and not fact.leaf:
            yield _cut(program, node, f"torch.tensor({bracketed(program, node)}.item(), requires_grad=True)")


@operator("late")
def item_in_loss(program: Program) -> Iterator[Fault]:
    """A term of a loss is taken as a number."""
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and fact.scalar and not fact.leaf and isinstance(program.parent(node), ast.BinOp):
            yield _cut(program, node, f"{bracketed(program, node)}.item()")


@operator("late")
def thresholded(program: Program) -> Iterator[Fault]:
    """A value is replaced by where it is large."""
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and not fact.leaf and len(fact.shape) > 1:
            text = bracketed(program, node)
            yield _cut(program, node, f"({text} > 0).to({text}.dtype)")


@operator("late")
def hard_choice(program: Program) -> Iterator[Fault]:
    """A softmax is replaced by the one-hot vector of its largest element."""
    for node in live_expressions(program):
        if isinstance(node, ast.Call) and method(node) == "softmax" and program.source(node).startswith("F."):
            functional = alias(program, "torch.nn.functional")
            text = bracketed(program, node)
            yield _cut(program, node, f"{functional}.one_hot({text}.argmax(-1), {text}.size(-1)).to({text}.dtype)")


@operator("late")
def rounded(program: Program) -> Iterator[Fault]:
    """A value is rounded on the path to the loss."""
    for node in live_expressions(program):
        fact = program.fact(node)
        if fact and not fact.leaf and not fact.scalar:
            yield _cut(program, node, f"torch.round({program.source(node)})")


@operator("late")
def sample_instead_of_rsample(program: Program) -> Iterator[Fault]:
    """A reparameterized sample becomes one without gradient."""
    for node in program.calls():
        if method(node) == "rsample" and isinstance(node.func, ast.Attribute) and program.fact(node):
            yield _cut(program, node, f"{program.source(node.func.value)}.sample()")


@operator()
def gradient_without_graph(program: Program) -> Iterator[Fault]:
    """create_graph=True is dropped where the gradient goes into the loss.

    Where the gradient is one of several parameters, this may be meant: it is the first order of meta-learning.
    """
    rules = "missing-create-graph", *CUT, "freed-graph"
    for node in gradient_calls(program):
        inputs = _inputs(node)
        if inputs is None or program.kind(inputs) != "tensor":
            continue
        for keyword in node.keywords:
            if keyword.arg == "create_graph" and program.source(keyword.value) == "True":
                value = program.replace(keyword.value, HERE + "False")
                yield Fault(
                    (value,), (want(*rules, at=(node, program.statement(node))),), needs="values", line=node.lineno
                )


@operator()
def backward_returns_none(program: Program) -> Iterator[Fault]:
    """The backward of a custom Function returns None, or one of them, instead of a gradient."""
    for node in program.walk():
        if not isinstance(node, ast.FunctionDef) or node.name != "backward":
            continue
        for result in ast.walk(node):
            if isinstance(result, ast.Return) and result.value is not None:
                values = result.value.elts if isinstance(result.value, ast.Tuple) else [result.value]
                for value in values:
                    edit = program.replace(value, HERE + "None")
                    yield Fault((edit,), (want(*CUT, at=(result,)),), needs="starved", line=result.lineno)


@operator("late")
def gradient_of_a_copy(program: Program) -> Iterator[Fault]:
    """autograd.grad with respect to a copy that the loss does not depend on."""
    for node in gradient_calls(program):
        inputs = _inputs(node)
        if inputs is not None and program.kind(inputs) == "tensor":
            edit = program.replace(inputs, HERE + f"{bracketed(program, inputs)}.clone()")
            wants = want("unused-input", "non-leaf-grad", at=(node, program.statement(node)))
            yield Fault((edit,), (wants,), line=node.lineno)


def _inputs(call: ast.Call) -> ast.expr | None:
    """What autograd.grad takes the gradient with respect to."""
    for keyword in call.keywords:
        if keyword.arg == "inputs":
            return keyword.value
    return call.args[1] if len(call.args) > 1 else None
