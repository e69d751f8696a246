"""Edits about which parameters there are, and which of them an optimizer holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import FUNCTIONS, Candidate, Place, in_parentheses, is_read, name_of

_PLAIN = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple, ast.GeneratorExp)


def register(place: Place) -> Iterator[Candidate]:
    """Puts modules and parameters of a plain list or dict into a container that registers them."""
    for statement in [*place.around, *place.file.statements]:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        node: ast.expr = statement.value
        if isinstance(node, ast.Call) and name_of(node) in ("tuple", "list") and node.args:
            inner = place.file.source(node.args[0])
            source = f"[{inner}]" if isinstance(node.args[0], ast.GeneratorExp) and inner[0] != "(" else inner
        elif isinstance(node, _PLAIN):
            source = place.file.source(node)
        else:
            continue
        if not place.file.source_of(statement).startswith("self."):
            continue
        shape = "Dict" if isinstance(node, (ast.Dict, ast.DictComp)) else "List"
        given = "" if source in ("[]", "{}", "()") else source
        for kind in (f"Module{shape}", f"Parameter{shape}"):
            text = place.file.replace(node, f"torch.nn.{kind}({given})")
            yield from place.edit(f"register them in an nn.{kind}", text)


def as_parameter(place: Place) -> Iterator[Candidate]:
    """A plain tensor of a module that requires grad becomes a Parameter."""
    for statement in place.around:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            converted = _converted(place.file, statement.value)
            yield from place.edit("convert first, then make it a Parameter", converted)
            source = place.file.source(statement.value)
            text = place.file.replace(statement.value, f"torch.nn.Parameter({source})")
            yield from place.edit("make it a Parameter", text)


def _converted(file: SourceFile, node: ast.expr) -> str | None:
    """`nn.Parameter(x.to(dtype))` for `nn.Parameter(x).to(dtype)`."""
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
    ):
        return None
    made = node.func.value
    if name_of(made) != "Parameter" or not made.args:
        return None
    whole, start = file.source(node), file.source(made)
    inner = in_parentheses(file, made.args[0])
    return file.replace(node, f"{file.source(made.func)}({inner}{whole.removeprefix(start)})")


def is_a_module(place: Place) -> Iterator[Candidate]:
    """A plain class that holds layers becomes a module."""
    for node in ast.walk(place.file.tree):
        if not isinstance(node, ast.ClassDef) or node.bases:
            continue
        inits = [one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"]
        if inits:
            text = place.file.insert_in_body(inits[0], "super().__init__()")
            if text is not None:
                head = re.compile(rf"^(\s*class {node.name})(\(\s*\))?:", re.MULTILINE)
                yield from place.edit(f"make {node.name} a module", head.sub(r"\1(torch.nn.Module):", text, count=1))


def in_place_of_new(place: Place) -> Iterator[Candidate]:
    """The values of the existing parameter change, instead of another Parameter taking its place."""
    statement = place.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = place.file.source(statement.targets[0]), statement.value
    if isinstance(value, ast.Call) and name_of(value) == "Parameter" and value.args:
        value = value.args[0]
    if isinstance(statement.targets[0], (ast.Attribute, ast.Subscript)):
        code = f"with torch.no_grad():\n    {target}.copy_({place.file.source(value)})"
        yield from place.edit(f"copy into `{target}`", place.file.replace_statement(statement, code))
        yield from _in_variable(place, statement, target)


def _in_variable(place: Place, statement: ast.Assign, target: str) -> Iterator[Candidate]:
    """Keeps the result in a variable of the function, which what follows uses."""
    name = target.rpartition(".")[2]
    changes: list[tuple[ast.expr | ast.stmt, str]] = [(statement.targets[0], name)]
    below = [node for node in ast.walk(place.function) if is_read(node) and node.lineno > (statement.end_lineno or 0)]
    changes += [(node, name) for node in below if place.file.source(node) == target]
    if name.isidentifier() and len(changes) > 1:
        yield from place.edit(f"keep it in a variable `{name}`", place.file.replace_all(changes))


def made_once(place: Place) -> Iterator[Candidate]:
    """What is made in each forward is made once, in `__init__`."""
    for statement in place.around:
        owner = place.file.around(statement, (ast.ClassDef,))
        function = place.file.around(statement, FUNCTIONS)
        if not isinstance(owner, ast.ClassDef) or not isinstance(function, FUNCTIONS):
            continue
        inits = [one for one in owner.body if isinstance(one, FUNCTIONS) and one.name == "__init__"]
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and inits and name_of(node)[:1].isupper() and _constant(node):
                name = f"self.{_name_for(statement, node)}"
                code = f"{name} = {place.file.source(node)}"
                text = place.file.replace(node, name)
                last = inits[0].body[-1]
                edited = SourceFile(place.file.path, text)
                again = edited.statement_at(last.lineno)
                if again is not None and inits[0] is not function:
                    yield from place.edit(f"create `{name}` once, in __init__", edited.insert_after(again, code))


def _constant(node: ast.Call) -> bool:
    """Whether it could stand anywhere: its arguments name no variable but modules."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names <= {"nn", "torch", name_of(node)}


def _name_for(statement: ast.stmt, node: ast.Call) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return name_of(node).lower()


# optimizers


def _made_optimizers(file: SourceFile) -> Iterator[ast.Call]:
    for node in ast.walk(file.tree):
        made = file.source(node.func) if isinstance(node, ast.Call) and node.args else ""
        if isinstance(node, ast.Call) and "optim" in made.lower() and "lr_scheduler" not in made:
            yield node


def optimizer_later(place: Place) -> Iterator[Candidate]:
    """Makes the optimizer after the layers that it is to hold."""
    for call in _made_optimizers(place.file):
        statement = place.file.statement_of(call)
        if isinstance(statement, ast.Assign):
            block = place.file.block(statement)
            for later in block[block.index(statement) + 1 :]:
                if isinstance(later, (ast.Assign, ast.Expr, ast.For, ast.With, ast.If, *FUNCTIONS)):
                    yield from place.edit("make the optimizer after the layers", place.file.move(statement, later))
                    code = place.file.source_of(statement)
                    yield from place.edit("make the optimizer again", place.file.insert_after(later, code))


def hold_all(place: Place) -> Iterator[Candidate]:
    """The optimizer holds all parameters: no filter, no values of a state_dict, no exhausted generator."""
    for call in _made_optimizers(place.file):
        for node in ast.walk(call.args[0]):
            if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and node.generators[0].ifs:
                text = place.file.replace(node, place.file.source(node.generators[0].iter))
                yield from place.edit("give the optimizer all parameters", text)
            if isinstance(node, ast.Call) and name_of(node) == "filter" and len(node.args) == 2:
                text = place.file.replace(node, place.file.source(node.args[1]))
                yield from place.edit("give the optimizer all parameters", text)
        for state in place.file.calls(call, "state_dict"):
            if isinstance(state.func, ast.Attribute):
                text = place.file.replace(call.args[0], f"{place.file.source(state.func.value)}.parameters()")
                yield from place.edit("give the optimizer the parameters themselves", text)
    for statement in place.file.statements:
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.Call) and name_of(value) in ("parameters", "filter", "chain"):
            text = place.file.replace(value, f"list({place.file.source(value)})")
            yield from place.edit("keep the parameters in a list", text)


def hold_more(place: Place) -> Iterator[Candidate]:
    """Gives the optimizer the parameters of the modules that the finding names."""
    roots: dict[str, None] = {}
    for name in place.finding.about:
        above = name.rpartition(".")[0]
        roots.update({above: None, above.split(".")[0]: None} if above else {name: None})
    for call in _made_optimizers(place.file):
        given = place.file.source(call.args[0])
        for root in roots:
            more = f"*{root}.parameters()" if root not in place.finding.about else root
            text = place.file.replace(call.args[0], f"[*{given}, {more}]")
            yield from place.edit(f"give the optimizer the parameters of `{root}`", text)


def add_group(place: Place) -> Iterator[Candidate]:
    """Gives the optimizer what is trained from this line on."""
    for statement in place.around:
        loop = place.file.around(statement, (ast.For,))
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and name_of(loop.iter) == "parameters":
            for optimizer in place.optimizers():
                code = f"{optimizer}.add_param_group({{'params': list({place.file.source(loop.iter)})}})"
                yield from place.edit("give them to the optimizer here", place.file.insert_after(loop, code))


def each_once(place: Place) -> Iterator[Candidate]:
    """Parameters that the optimizer was given twice are listed once."""
    for call in _made_optimizers(place.file):
        given = call.args[0]
        parts: list[ast.expr] = []
        if isinstance(given, ast.BinOp):
            parts = [given.left, given.right]
        elif isinstance(given, (ast.List, ast.Tuple)):
            parts = [one.value if isinstance(one, ast.Starred) else one for one in given.elts]
        for part in parts:
            yield from place.edit("list each parameter once", place.file.replace(given, place.file.source(part)))
        if isinstance(given, (ast.List, ast.Tuple)):
            for left_out in given.elts:
                rest = ", ".join(place.file.source(one) for one in given.elts if one is not left_out)
                yield from place.edit("list each parameter once", place.file.replace(given, f"[{rest}]"))


def grad_to_none(place: Place) -> Iterator[Candidate]:
    """What is frozen keeps no gradient that an optimizer would use."""
    for statement in place.around:
        source = place.file.source_of(statement)
        for end, code in ((".requires_grad = False", ".grad = None"), (".requires_grad_(False)", ".zero_grad()")):
            name = source.removesuffix(end)
            if name != source:
                yield from place.edit("also clear their gradients", place.file.insert_after(statement, f"{name}{code}"))
                yield from place.edit("also clear it", place.file.insert_after(statement, f"{name}.grad = None"))
        for call in place.file.calls(statement, "zero_grad"):
            code = re.sub(r"set_to_none\s*=\s*False", "set_to_none=True", place.file.source(call))
            yield from place.edit("zero_grad with set_to_none=True", place.file.replace(call, code))
    for call in place.file.calls(place.file.tree, "zero_grad"):
        code = re.sub(r"set_to_none\s*=\s*False", "set_to_none=True", place.file.source(call))
        yield from place.edit("zero_grad with set_to_none=True", place.file.replace(call, code))


def spell(place: Place) -> Iterator[Candidate]:
    """`requires_grad` as torch spells it, and on what has it."""
    for statement in place.around:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute):
                owner = place.file.source(target.value)
                yield from place.edit("requires_grad", place.file.replace(target, f"{owner}.requires_grad"))
                code = f"{owner}.requires_grad_(False)"
                yield from place.edit(f"call {code}", place.file.replace_statement(statement, code))


def tie_again(place: Place) -> Iterator[Candidate]:
    """Ties the two parameters again after they were parted."""
    site = place.statement
    for tied in place.related:
        if site is not None and isinstance(tied, ast.Assign):
            code = place.file.source_of(tied)
            for statement in (site, tied):
                yield from place.edit("tie them again", place.file.insert_after(statement, code))
            function = place.file.around(tied, FUNCTIONS)
            if isinstance(function, FUNCTIONS) and code.startswith("self."):
                owner = place.file.source_of(site).partition(".")[0]
                yield from place.edit("tie them again", place.file.insert_after(site, f"{owner}.{function.name}()"))
                own = code.replace("self.", f"{owner}.")
                yield from place.edit("tie them again", place.file.insert_after(site, own))


def once_before_loop(place: Place) -> Iterator[Candidate]:
    """A hook is registered once: before the loop, or where the module is made."""
    statement = place.statement
    loop = place.file.around(statement, (ast.For, ast.While)) if statement is not None else None
    if isinstance(loop, (ast.For, ast.While)) and isinstance(statement, (ast.Expr, ast.Assign)):
        yield from place.edit("register it once, before the loop", place.file.move_before(statement, loop))
