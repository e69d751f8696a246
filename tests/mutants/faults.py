"""What a fault is: edits of a program's text, and marks that say where it must be found.

A mark is a character that is put into the text where a finding is expected, and taken out again when its line is known.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.source import Program

#: stands in inserted text where the finding is expected
HERE = "\ue0ff"
_FIRST_MARK = 0xE000
_MARKS = re.compile("[\ue000-\ue0ff]")


@dataclass(frozen=True)
class Edit:
    """Characters `start` to `end` become `text`. `anchor` is the statement that it belongs to."""

    start: int
    end: int
    text: str
    anchor: ast.stmt | None = None

    @property
    def is_insertion(self) -> bool:
        return self.start == self.end


@dataclass(frozen=True)
class Want:
    """What must be found: one of these rules, at a marked line. `here`: the marks in the inserted text count too."""

    rules: tuple[str, ...]
    nodes: tuple[ast.AST, ...] = ()
    here: bool = True


@dataclass(frozen=True)
class Fault:
    """One fault at one place: the edits that make it, and what must be found. Any one of the wants is enough.

    `needs` is the least that must differ when the program runs: "any" (parameters, an exception, or memory), "values"
    (parameters or an exception), "starved" (parameters that get fewer gradients, or an exception), "nonfinite" (a step with
    NaN or infinity in a gradient, or an exception), "raises" (an exception). `raises`: whether
    the fault may end the program with an exception. `note` is a word about the variant.
    """

    edits: tuple[Edit, ...]
    wants: tuple[Want, ...]
    needs: str = "any"
    raises: bool = True
    note: str = ""
    line: int = 0


@dataclass(frozen=True)
class Mutated:
    """The text of a mutant, and for each want its rules and lines."""

    text: str
    wants: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]


def mutate(program: Program, faults: Sequence[Fault]) -> list[Mutated]:
    """One text with all the faults: for each fault the text again, with its own wants.

    Raises ValueError where their edits overlap, and SyntaxError where the result is no Python.
    """
    edits: list[Edit] = []
    mark = _FIRST_MARK
    wants: list[list[tuple[tuple[str, ...], str]]] = []
    for fault in faults:
        own: list[tuple[tuple[str, ...], str]] = []
        for want in fault.wants:
            own.append((want.rules, chr(mark)))
            edits += [Edit(program.start(node), program.start(node), chr(mark)) for node in want.nodes]
            mark += 1
        here = "".join(c for (_, c), want in zip(own, fault.wants, strict=True) if want.here)
        clock = f"ticks_{len(wants)}" if wants else "ticks"
        for edit in fault.edits:
            text = re.sub(r"\bticks\b", clock, edit.text) if "itertools.count()" in _inserted(fault) else edit.text
            edits.append(replace(edit, text=text.replace(HERE, here)))
        wants.append(own)
    marked = apply(program.text, edits)
    text = _MARKS.sub("", marked)
    compile(text, program.name, "exec", dont_inherit=True)
    lines = marked.splitlines()
    result = []
    for own in wants:
        found = [(rules, tuple(n for n, line in enumerate(lines, 1) if char in line)) for rules, char in own]
        result.append(Mutated(text, tuple(found)))
    return result


def apply(text: str, edits: Sequence[Edit], start: int = 0, end: int | None = None) -> str:
    """The text from `start` to `end` with the edits; a mark within a replaced piece is left out.

    Raises ValueError where edits overlap.
    """
    end = len(text) if end is None else end
    changes = sorted((e for e in edits if not (e.is_insertion and _is_mark(e.text))), key=lambda e: (e.start, e.end))
    for one, two in itertools.pairwise(changes):
        if two.start < one.end:
            raise ValueError("edits overlap")
    marks = [e for e in edits if e.is_insertion and _is_mark(e.text)]
    marks = [m for m in marks if not any(c.start < m.start < c.end or c.start == m.start < c.end for c in changes)]
    pieces, at = [], start
    for edit in sorted([*changes, *marks], key=lambda e: (e.start, not e.is_insertion)):
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:end]])


def _is_mark(text: str) -> bool:
    return len(text) == 1 and bool(_MARKS.match(text))


def _inserted(fault: Fault) -> str:
    return "".join(edit.text for edit in fault.edits)
