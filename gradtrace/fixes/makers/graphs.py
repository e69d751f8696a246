"""Edits about graphs: which are kept, which are run through twice, and where they end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import (
    FUNCTIONS,
    LOOPS,
    Candidate,
    Place,
    in_parentheses,
    is_read,
    with_keyword,
    without_keyword,
)


def retain_earlier(place: Place) -> Iterator[Candidate]:
    """Only where that is an answer: a graph that is kept from one iteration to the next grows, and holds old values."""
    if "retain_graph=True" not in place.finding.help:
        return
    for statement in place.around:
        for method in ("backward", "grad"):
            for call in place.file.calls(statement, method):
                if not any(one.arg in ("retain_graph", "create_graph") for one in call.keywords):
                    text = place.file.replace(call, with_keyword(place.file, call, "retain_graph=True"))
                    yield from place.edit("keep the graph for the later call", text)


def join_losses(place: Place) -> Iterator[Candidate]:
    """One backward call of the sum, where two follow each other without a step or a clearing in between."""
    calls = [statement for statement in place.statements("backward") if _root(place.file, statement)]
    for first in calls:
        block = place.file.block(first)
        for second in block[block.index(first) + 1 :]:
            if any(any(place.file.calls(second, name)) for name in ("step", "zero_grad")):
                break
            if second in calls:
                roots = _root(place.file, first), _root(place.file, second)
                text = place.file.replace_statement(second, f"({roots[0]} + {roots[1]}).backward()")
                joined = SourceFile(place.file.path, text)
                again = joined.statement_at(first.lineno)
                if again is not None:
                    yield from place.edit("call backward once, on the sum", joined.delete(again))
                break


def _root(file: SourceFile, statement: ast.stmt) -> str:
    """`loss` of the statement `loss.backward(...)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not call.args:
        return file.source(call.func.value) if call.func.attr == "backward" else ""
    return ""


def say_so(place: Place) -> Iterator[Candidate]:
    """What the help says to type: in place of a statement that assigns the same, or before it, or at its end."""
    for code in place.snippets():
        try:
            (said,) = ast.parse(code).body
        except (SyntaxError, ValueError):
            continue
        if not isinstance(said, (ast.Assign, ast.AugAssign)):
            continue
        targets = _targets(said)
        reads = {ast.unparse(node) for node in ast.walk(said.value)}
        for statement in place.around:
            if isinstance(statement, (ast.Assign, ast.AugAssign)) and _targets(statement) == targets:
                # what reads its own target does not take the place of what computes it
                new = reads.isdisjoint(targets)
                text = (
                    place.file.replace_statement(statement, code) if new else place.file.insert_after(statement, code)
                )
                yield from place.edit(f"`{code}`", text)
        for statement in place.around:
            if not isinstance(statement, FUNCTIONS):
                yield from place.edit(f"`{code}`", place.file.insert_before(statement, code))
        for statement in place.around:
            loop = place.file.around(statement, LOOPS)
            body = getattr(loop, "body", None)
            if body:
                yield from place.edit(f"`{code}` at the end", place.file.insert_after(body[-1], code))


def _targets(statement: ast.Assign | ast.AugAssign) -> list[str]:
    found = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [ast.unparse(one) for one in found]


def detach_arguments(place: Place) -> Iterator[Candidate]:
    """What is passed on at these lines, without its graph: variables first, then the results of calls."""
    if "detach" not in place.finding.help:
        return
    for statement in place.around:
        for node in sorted(_passed(statement), key=lambda node: not is_read(node)):
            source = place.file.source(node)
            if not source.endswith(".detach()"):
                text = place.file.replace(node, f"{in_parentheses(place.file, node)}.detach()")
                yield from place.edit(f"detach `{source}`", text)


def _passed(statement: ast.stmt) -> Iterator[ast.expr]:
    head = ast.Module([], []) if isinstance(statement, (*FUNCTIONS, *LOOPS, ast.With, ast.If)) else statement
    for node in ast.walk(head):
        if isinstance(node, ast.Call):
            for one in node.args:
                yield from one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one]
    if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is not None:
        value = statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        # of a sum or product one side may be what trains
        yield from (one for one in parts if not isinstance(one, ast.BinOp))


def detach_operands(place: Place) -> Iterator[Candidate]:
    """Names that these lines compute with, without their graph."""
    if "detach" not in place.finding.help:
        return
    for statement in place.around:
        kept: list[tuple[ast.expr | ast.stmt, str]] = []
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) and statement.value is not None:
            for node in ast.walk(statement.value):
                if is_read(node) and not isinstance(place.file.parent(node), (ast.Attribute, ast.Call)):
                    source = place.file.source(node)
                    yield from place.edit(f"detach `{source}`", place.file.replace(node, f"{source}.detach()"))
                    if isinstance(node, ast.Attribute):
                        kept.append((node, f"{source}.detach()"))
        if len(kept) > 1:
            # what objects keep from one iteration to the next
            title = " and ".join(f"`{code}`" for _, code in kept)
            yield from place.edit(title, place.file.replace_all(kept))


def under_no_grad(place: Place) -> Iterator[Candidate]:
    """What should not train is computed without a graph."""
    for statement in place.around:
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            text = place.file.put_under([statement], "with torch.no_grad():")
            yield from place.edit(f"`{place.file.source_of(statement)}` under no_grad", text)


def into_loop(place: Place) -> Iterator[Candidate]:
    """What is computed once is computed in each iteration, or in each call of the closure."""
    for statement in place.around:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        block = place.file.block(statement)
        for later in block[block.index(statement) + 1 :]:
            if isinstance(later, (*LOOPS, *FUNCTIONS)) and any(place.file.calls(later, "backward")):
                moved = place.file.insert_in_body(later, place.file.source_of(statement))
                if moved is not None:
                    edited = SourceFile(place.file.path, moved)
                    again = edited.statement_at(statement.lineno)
                    title = f"compute `{', '.join(ast.unparse(one) for one in _assigned(statement))}` inside"
                    yield from place.edit(title, edited.delete(again) if again is not None else None)


def _assigned(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def empty_list(place: Place) -> Iterator[Candidate]:
    """A list that holds graphs of earlier iterations starts empty in each."""
    for statement in place.around:
        for call in place.file.calls(statement, "append"):
            if isinstance(call.func, ast.Attribute):
                name = place.file.source(call.func.value)
                for backward in place.statements("backward"):
                    text = place.file.insert_after(backward, f"{name}.clear()")
                    yield from place.edit(f"empty `{name}` after the backward call", text)


def drop_option(place: Place) -> Iterator[Candidate]:
    """Leaves out retain_graph or create_graph."""
    for name in ("retain_graph", "create_graph"):
        for method in ("backward", "grad"):
            for call in place.file.calls(place.statement, method) if place.statement is not None else ():
                code = without_keyword(place.file, call, name)
                yield from place.edit(f"leave {name} out", place.file.replace(call, code) if code else None)


def create_graph(place: Place) -> Iterator[Candidate]:
    for statement in place.around:
        for method in ("grad", "backward"):
            for call in place.file.calls(statement, method):
                code = without_keyword(place.file, call, "retain_graph") or place.file.source(call)
                if not any(one.arg == "create_graph" for one in call.keywords):
                    code = f"{code.rstrip()[:-1].rstrip().rstrip(',')}, create_graph=True)".replace("(, ", "(")
                    yield from place.edit("keep the graph of the gradient", place.file.replace(call, code))


def keep_number(place: Place) -> Iterator[Candidate]:
    """Keeps the number instead of the tensor with its graph."""
    for statement in place.around:
        for value in _kept(statement):
            source = place.file.source(value)
            for method, title in (("item", "keep the number of"), ("detach", "detach")):
                text = place.file.replace(value, f"{in_parentheses(place.file, value)}.{method}()")
                yield from place.edit(f"{title} `{source}`", text)


def _kept(statement: ast.stmt) -> Iterator[ast.expr]:
    """The values that a statement adds to a variable or a container."""
    if isinstance(statement, (ast.AugAssign, ast.Assign)):
        yield statement.value
        if isinstance(statement.value, ast.BinOp):
            yield from (statement.value.left, statement.value.right)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        for one in statement.value.args:
            if isinstance(one, (ast.Tuple, ast.List)):
                yield from one.elts
            elif isinstance(one, ast.Dict):
                yield from one.values
            elif not isinstance(one, ast.Starred):
                yield one
