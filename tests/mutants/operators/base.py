"""What operators share: how one is registered, and the questions that they ask a program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mutants.faults import HERE, Edit, Fault, Want
from mutants.source import Program

Maker = Callable[[Program], Iterator[Fault]]


@dataclass(frozen=True)
class Operator:
    """A kind of fault: yields it for each place of a program.

    `onsets` says how else it may come: "late" (from half-way on), "some" (every third time). A fault that some programs
    have on purpose now and then, such as a step left out, has none.
    """

    name: str
    make: Maker
    onsets: tuple[str, ...]
    summary: str


OPERATORS: dict[str, Operator] = {}


def operator(*onsets: str) -> Callable[[Maker], Maker]:
    """Registers a function as the operator of its name; its docstring says what it does."""

    def register(make: Maker) -> Maker:
        name = make.__name__.replace("_", "-")
        assert name not in OPERATORS
        OPERATORS[name] = Operator(name, make, onsets, (make.__doc__ or "").strip())
        return make

    return register


# -- statements of a training loop


def method(node: ast.AST) -> str:
    """The name of the method that a statement or expression calls."""
    if isinstance(node, ast.Expr | ast.Assign):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def function_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def owner(node: ast.AST) -> ast.expr | None:
    """What the method is called on."""
    if isinstance(node, ast.Expr | ast.Assign):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return None


def simple(program: Program, name: str) -> list[ast.Expr]:
    """The statements that are a call of a method of this name, and ran."""
    found = [s for s in program.statements() if isinstance(s, ast.Expr) and method(s) == name]
    return [s for s in found if program.count(s)]


def zeroings(program: Program) -> list[ast.stmt]:
    """The statements that clear gradients: zero_grad(), and loops that set .grad to None."""
    loops = [s for s in program.statements() if isinstance(s, ast.For) and len(s.body) == 1 and _drops_grad(s.body[0])]
    return sorted([*simple(program, "zero_grad"), *loops], key=program.start)


def _drops_grad(statement: ast.stmt) -> bool:
    """`parameter.grad = None`"""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return False
    value = statement.value
    return statement.targets[0].attr == "grad" and isinstance(value, ast.Constant) and value.value is None


def backwards(program: Program) -> list[ast.Expr]:
    return simple(program, "backward")


def steps(program: Program) -> list[ast.Expr]:
    """The statements that let an optimizer make a step, through a scaler or not."""
    found = []
    for statement in simple(program, "step"):
        caller = owner(statement)
        if caller is not None and program.kind(caller) in ("optimizer", "scaler"):
            found.append(statement)
    return found


def stepped(program: Program, step: ast.Expr) -> str:
    """The source of the optimizer that makes the step."""
    caller = owner(step)
    assert caller is not None
    if program.kind(caller) == "scaler":
        assert isinstance(step.value, ast.Call)
        return program.source(step.value.args[0])
    return program.source(caller)


def closes_over(program: Program, step: ast.Expr) -> bool:
    """Whether the step is given a closure, which computes the gradients again."""
    assert isinstance(step.value, ast.Call)
    return any(program.kind(argument) == "function" for argument in step.value.args)


def gradient_calls(program: Program) -> list[ast.Call]:
    """The calls of torch.autograd.grad that ran."""
    return [c for c in program.calls() if method(c) == "grad" and program.fact(c)]


def clippings(program: Program) -> list[ast.Expr]:
    return [*simple(program, "clip_grad_norm_"), *simple(program, "clip_grad_value_")]


def optimizers(program: Program) -> list[ast.Assign]:
    """The assignments that make an optimizer."""
    found = []
    for statement in program.statements():
        call = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(call, ast.Call) and program.kind(call) == "optimizer" and function_name(call)[:1].isupper():
            assert isinstance(statement, ast.Assign)
            found.append(statement)
    return found


def same_function(program: Program, nodes: list[ast.Expr], near: ast.AST) -> list[ast.Expr]:
    """Those in the same function as `near`, or, where there are none, all."""
    close = [n for n in nodes if program.function(n) is program.function(near)]
    return close or nodes


def backwards_near(program: Program, near: ast.AST) -> tuple[ast.Expr, ...]:
    return tuple(same_function(program, backwards(program), near))


def siblings(program: Program, one: ast.stmt, two: ast.stmt) -> bool:
    return two in program.body(one)


def between(program: Program, one: ast.stmt, two: ast.stmt) -> list[ast.stmt]:
    """The neighbors from `one` to `two`, both included; one comes first."""
    body = program.body(one)
    return body[body.index(one) : body.index(two) + 1]


def statement_lines(program: Program, statement: ast.stmt) -> str:
    """The whole lines of a statement."""
    return program.text[program.line_start(statement) : program.line_end(statement)]


def marked(lines: str) -> str:
    """Lines with the mark at the first."""
    body = lines.lstrip(" ")
    return lines[: len(lines) - len(body)] + HERE + body


def reorder(program: Program, first: ast.stmt, last: ast.stmt, text: str) -> Edit:
    """The neighbors from first to last become `text`, whole lines."""
    return Edit(program.line_start(first), program.line_end(last), text, first)


def move(program: Program, moved: ast.stmt, target: ast.stmt, behind: bool) -> list[Edit]:
    """A statement goes before or behind another, and its line is where the finding is expected."""
    indent = program.indent(target)
    text = program.source(moved)
    at = program.line_end(target) if behind else program.line_start(target)
    return [program.delete(moved), Edit(at, at, f"{indent}{HERE}{text}\n", target)]


# -- expressions


#: calls that use only the number of a value, or a label
_READ_OFF = "item", "detach", "argmax", "numpy", "tolist", "eq", "print", "float", "accuracy"
#: calls that keep a value, where another one is no path to the loss
_KEEP = "append", "save_for_backward", "register_hook", "copy_"


def live_expressions(program: Program) -> list[ast.expr]:
    """Expressions through which gradients flow, where they are passed on: arguments, assigned and returned values."""
    found = []
    for node in program.walk():
        fact = program.fact(node)
        if not fact or fact.kind != "tensor" or not fact.live or not fact.floating or not isinstance(node, ast.expr):
            continue
        if not program.has_own_lines(program.statement(node)) or _is_read_off(program, node):
            continue
        if _is_passed_on(program, node, fact.leaf):
            found.append(node)
    return sorted(found, key=program.start)


def _is_passed_on(program: Program, node: ast.expr, leaf: bool) -> bool:
    parent = program.parent(node)
    if isinstance(parent, ast.Call):
        return node in parent.args and method(parent) not in _KEEP
    if isinstance(parent, ast.BinOp):
        return True
    return isinstance(parent, ast.Assign | ast.Return) and not leaf


def _is_read_off(program: Program, node: ast.expr) -> bool:
    """Whether only a number or a label of the value is used: an .item(), an argmax, a printed value."""
    for above in program.ancestors(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Call) and function_name(above) in _READ_OFF:
            return True
        if isinstance(above, ast.Compare | ast.JoinedStr):
            return True
    return False


def bracketed(program: Program, node: ast.expr) -> str:
    text = program.source(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def alias(program: Program, module: str) -> str:
    """How the program writes a module's name; the name with an import of its own where it does not."""
    for node in program.walk():
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name == module:
                    return name.asname or name.name
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                if f"{node.module}.{name.name}" == module:
                    return name.asname or name.name
    return module


def want(*rules: str, at: tuple[ast.AST, ...] = (), here: bool = True) -> Want:
    return Want(rules, at, here)
