"""Faults in which parameters an optimizer has, and in the mode of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Fault
from mutants.operators.base import (
    backwards,
    function_name,
    method,
    operator,
    optimizers,
    owner,
    simple,
    stepped,
    steps,
    want,
    zeroings,
)
from mutants.operators.paths import CUT
from mutants.source import Program


@operator()
def plain_container(program: Program) -> Iterator[Fault]:
    """nn.ModuleList or nn.ModuleDict becomes a plain list or dict: its parameters are hidden."""
    for call in program.calls():
        name = function_name(call)
        if name in ("ModuleList", "ModuleDict", "ParameterList") and len(call.args) == 1:
            inner = program.source(call.args[0])
            text = inner
            if isinstance(call.args[0], ast.GeneratorExp):
                text = f"[{inner.strip()[1:-1] if inner.startswith('(') else inner}]"
            edit = program.replace(call, HERE + text)
            yield Fault(
                (edit,), (want("unoptimized-parameter", "unreached-parameter"),), needs="values", line=call.lineno
            )


@operator()
def parameter_becomes_result(program: Program) -> Iterator[Fault]:
    """A parameter is scaled when it is made: the attribute is the result of an operation, and no parameter."""
    for statement in program.statements():
        made = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(made, ast.Call) and function_name(made) == "Parameter":
            edit = program.replace(made, f"{HERE}{program.source(made)} * 1.0")
            rules = "unoptimized-parameter", "non-leaf-grad", "freed-graph", "unreached-parameter"
            yield Fault((edit,), (want(*rules),), needs="values", line=statement.lineno)


@operator()
def layer_after_optimizer(program: Program) -> Iterator[Fault]:
    """A layer is replaced when the optimizer has the old one already."""
    for made in optimizers(program):
        assert isinstance(made.value, ast.Call)
        for node in ast.walk(made.value):
            fact = program.fact(node)
            if fact and fact.kind == "module" and fact.layers and isinstance(node, ast.Name | ast.Attribute):
                for path, code in (fact.layers[-1], fact.layers[0]):
                    target = f"{program.source(node)}{_indexed(path)}"
                    line = program.after(made, f"{HERE}{target} = {_qualified(program, code)}")
                    wants = want("unoptimized-parameter", "unreached-parameter", at=(made,))
                    yield Fault((line,), (wants,), needs="values", line=made.lineno)


def _indexed(path: str) -> str:
    """`body.0.fc` as Python writes it behind a module: `.body[0].fc`."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))


def _qualified(program: Program, code: str) -> str:
    for node in program.walk():
        if isinstance(node, ast.Import | ast.ImportFrom) and any((n.asname or n.name) == "nn" for n in node.names):
            return code
    return "torch." + code


@operator()
def one_module_left_out(program: Program) -> Iterator[Fault]:
    """Of several modules in one optimizer, one is left out."""
    for statement in program.statements():
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and method(n) == "parameters"]
        if not isinstance(statement, ast.Assign | ast.Return) or len(calls) < 2:
            continue
        places = (*optimizers(program), statement)
        for node in ast.walk(statement):
            edit = None
            if isinstance(node, ast.List) and len(node.elts) > 1 and any(isinstance(e, ast.Starred) for e in node.elts):
                edit = program.replace(node, f"{HERE}[{program.source(node.elts[0])}]")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                edit = program.replace(node, HERE + program.source(node.left))
            if edit:
                yield Fault((edit,), (want("unoptimized-parameter", at=places),), needs="values", line=statement.lineno)


@operator()
def twice_in_optimizer(program: Program) -> Iterator[Fault]:
    """Some parameters are twice in one optimizer."""
    for made in optimizers(program):
        assert isinstance(made.value, ast.Call)
        if not made.value.args:
            continue
        parameters = made.value.args[0]
        caller = owner(parameters)
        fact = program.fact(caller) if caller is not None else None
        if method(parameters) == "parameters" and fact and fact.layers and caller is not None:
            name = program.source(caller)
            text = f"{HERE}[*{name}.parameters(), *{name}{_indexed(fact.layers[-1][0])}.parameters()]"
            edit = program.replace(parameters, text)
            yield Fault((edit,), (want("duplicate-parameter", at=(made,)),), needs="values", line=made.lineno)


@operator()
def all_frozen(program: Program) -> Iterator[Fault]:
    """All parameters of an optimizer are frozen before training."""
    for made in optimizers(program):
        name = program.source(made.targets[0])
        lines = (
            f"{HERE}for group in {name}.param_groups:",
            f"    {HERE}for parameter in group['params']:",
            f"        {HERE}parameter.requires_grad = False",
        )
        rules = *CUT, "unoptimized-parameter", "never-stepped"
        wants = want(*rules, at=(made,))
        yield Fault((program.after(made, *lines),), (wants,), needs="starved", line=made.lineno)


@operator()
def frozen_and_moving(program: Program) -> Iterator[Fault]:
    """Parameters are frozen half-way, and their zeroed gradients let the optimizer's momentum move them on."""
    for zeroing in zeroings(program):
        caller = owner(zeroing)
        step = [s for s in steps(program) if caller is not None and stepped(program, s) == program.source(caller)]
        if caller is None or program.kind(caller) != "optimizer" or not step or program.count(zeroing) < 12:
            continue
        assert isinstance(zeroing, ast.Expr)
        name = program.source(caller)
        half = program.count(zeroing) // 2
        lines = (
            f"{HERE}if next(ticks) == {half}:",
            f"    {HERE}for parameter in {name}.param_groups[0]['params'][:2]:",
            f"        {HERE}parameter.requires_grad = False",
            f"{HERE}{name}.zero_grad(set_to_none=False)",
        )
        text = f"\n{program.indent(zeroing)}".join(lines)
        edits = program.replace(zeroing, text), program.define("import itertools", "", "ticks = itertools.count()")
        rules = "frozen-moves", "stale-grad"
        yield Fault(edits, (want(*rules, at=tuple(step)),), needs="values", raises=False, line=zeroing.lineno)


@operator()
def tie_broken(program: Program) -> Iterator[Fault]:
    """Two layers share a weight; then one of them gets a copy."""
    for statement in program.statements():
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
            continue
        target = statement.targets[0]
        fact = program.fact(statement.value)
        ties = isinstance(statement.value, ast.Attribute) and target.attr == "weight"
        if ties and fact and fact.leaf and fact.kind == "tensor":
            name = program.source(target)
            line = f"{HERE}{name} = nn.Parameter({name}.detach().clone())"
            yield Fault(
                (program.after(statement, line),),
                (want("broken-tie", at=(statement,)),),
                needs="values",
                line=statement.lineno,
            )


@operator()
def misspelt_attribute(program: Program) -> Iterator[Fault]:
    """requires_grad is misspelt where it is set."""
    for node in program.walk():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if target.attr == "requires_grad":
                text = f"{HERE}{program.source(target.value)}.require_grad"
                yield Fault(
                    (program.replace(target, text),), (want("misspelt-attribute"),), needs="any", line=node.lineno
                )


def _random_modules(program: Program, name: str) -> list[ast.Expr]:
    found = []
    for statement in simple(program, name):
        caller = owner(statement)
        fact = program.fact(caller) if caller is not None else None
        if fact and fact.kind == "module" and fact.random:
            found.append(statement)
    return found


@operator()
def stays_in_eval(program: Program) -> Iterator[Fault]:
    """model.train() is forgotten: after the first evaluation training goes on with dropout and batch norm in eval."""
    evals = tuple(n for n in program.walk() if isinstance(n, ast.Call) and method(n) == "eval")
    for statement in _random_modules(program, "train"):
        assert isinstance(statement.value, ast.Call)
        if not statement.value.args and program.count(statement) > 1:
            edit = program.delete(statement)
            forwards = _model_calls(program, backwards(program))
            yield Fault((edit,), (want("wrong-mode", at=(*evals, *forwards)),), needs="values", line=statement.lineno)


@operator()
def evaluates_in_train(program: Program) -> Iterator[Fault]:
    """model.eval() is forgotten before an evaluation."""
    for statement in _random_modules(program, "eval"):
        inside = program.function(statement)
        calls = tuple(
            c
            for c in program.calls()
            if program.function(c) is inside and program.kind(c.func) == "module" and c.lineno > statement.lineno
        )
        blocks = tuple(
            n
            for n in program.walk()
            if isinstance(n, ast.With) and program.function(n) is inside and n.lineno > statement.lineno
        )
        yield Fault(
            (program.delete(statement),),
            (want("wrong-mode", at=(*calls, *blocks)),),
            needs="values",
            line=statement.lineno,
        )


@operator()
def trains_in_eval(program: Program) -> Iterator[Fault]:
    """A model is put into eval mode where it is trained."""
    for statement in _random_modules(program, "train"):
        call = statement.value
        assert isinstance(call, ast.Call)
        if not call.args and isinstance(call.func, ast.Attribute):
            edit = program.replace(statement, f"{HERE}{program.source(call.func.value)}.eval()")
            forwards = _model_calls(program, backwards(program))
            yield Fault((edit,), (want("wrong-mode", at=tuple(forwards)),), needs="values", line=statement.lineno)


def _model_calls(program: Program, near: list[ast.Expr]) -> list[ast.AST]:
    functions = {program.function(n) for n in near}
    found: list[ast.AST] = []
    for call in program.calls():
        fact = program.fact(call.func)
        if program.function(call) in functions and fact and fact.kind == "module" and fact.random:
            found.append(call)
    return found


@operator()
def dropout_always(program: Program) -> Iterator[Fault]:
    """F.dropout is not given the mode, so that it drops in evaluation too."""
    for call in program.calls():
        if function_name(call) == "dropout":
            for keyword in call.keywords:
                if keyword.arg == "training":
                    edit = program.replace(keyword.value, HERE + "True")
                    yield Fault((edit,), (want("wrong-mode", at=(call,)),), needs="any", line=call.lineno)


@operator()
def hook_in_the_loop(program: Program) -> Iterator[Fault]:
    """A hook is registered at every iteration."""
    for backward in backwards(program):
        for call in program.calls():
            statement = program.statement(call)
            fact = program.fact(call.func)
            same = program.body(backward) is program.body(statement) and program.count(statement) >= 12
            if (
                same
                and fact
                and fact.kind == "module"
                and fact.type[-4:] != "Loss"
                and program.has_own_lines(statement)
            ):
                line = f"{HERE}{program.source(call.func)}.register_forward_hook(lambda module, args, output: None)"
                yield Fault(
                    (program.before(statement, line),), (want("hook-growth"),), needs="any", line=statement.lineno
                )
