"""Faults that begin late, or that come and go."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from mutants.faults import Edit, Fault, Want, apply
from mutants.source import Program

#: a statement that runs less often has no half-way
_LEAST = 12


def delayed(program: Program, fault: Fault, onset: str) -> Fault | None:
    """The same fault only from half-way on ("late") or every third time ("some"); None where it cannot be."""
    anchors = [e.anchor for e in fault.edits if e.anchor is not None]
    block = _block(program, anchors)
    if not block or not all(program.has_own_lines(s) for s in block):
        return None
    count = max(program.count(s) for s in block)
    if count < _LEAST:
        return None
    condition, opposite, extra = _onset(program, block[0], count, onset)
    inside = [e for e in fault.edits if e.anchor is not None]
    outside = [e for e in fault.edits if e.anchor is None]
    indent = program.indent(block[0])
    if len(inside) == 1 and inside[0].is_insertion:
        edit = replace(inside[0], text=f"{indent}if {condition}:\n{_indented(inside[0].text)}")
    else:
        start, end = program.line_start(block[0]), program.line_end(block[-1])
        if any(e.start < start or e.end > end for e in inside):
            return None
        changed, old = apply(program.text, inside, start, end), program.text[start:end]
        if changed.strip() in ("", "pass"):
            text = f"{indent}if {opposite}:\n{_indented(old)}"
        else:
            text = f"{indent}if {condition}:\n{_indented(changed)}{indent}else:\n{_indented(old)}"
        edit = Edit(start, end, text, block[0])
    # a mark on a node of the block would be lost with the text that is replaced
    wants = tuple(_without_marks_in(program, want, edit) for want in fault.wants)
    return replace(fault, edits=(*outside, *extra, edit), wants=wants, note=f"{fault.note} {onset}".strip())


def _without_marks_in(program: Program, want: Want, edit: Edit) -> Want:
    kept = tuple(n for n in want.nodes if not (edit.start < edit.end and edit.start <= program.start(n) < edit.end))
    return replace(want, nodes=kept)


def _block(program: Program, anchors: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The neighbors in one body that cover these statements."""
    if not anchors:
        return []
    body = program.body(anchors[0])
    if not all(a in body for a in anchors):
        return []
    places = [body.index(a) for a in anchors]
    return body[min(places) : max(places) + 1]


def _onset(program: Program, statement: ast.stmt, count: int, onset: str) -> tuple[str, str, list[Edit]]:
    loop = program.loop(statement)
    counter = _counter(program, loop, count) if isinstance(loop, ast.For) else None
    extra = []
    if counter:
        name, first = counter
        half = first + count // 2
    else:
        name, half = "next(ticks)", count // 2
        extra = [program.define("import itertools", "", "ticks = itertools.count()")]
    if onset == "late":
        return f"{name} >= {half}", f"{name} < {half}", extra
    return f"{name} % 3 == 2", f"{name} % 3 != 2", extra


def _counter(program: Program, loop: ast.For, count: int) -> tuple[str, int] | None:
    """The loop's own counter and its first value, where it counts each run of the statement once."""
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    for node in ast.walk(loop):
        fact = program.fact(node)
        counts = fact is not None and fact.kind == "int" and fact.most - fact.least + 1 == count
        if fact and counts and isinstance(node, ast.Name) and node.id in names:
            return node.id, fact.least
    return None


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
