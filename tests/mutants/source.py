"""A program as text and syntax tree, and edits of its text that keep every other line as it is.

Edits are guided by the tree and made in the text, so that comments and layout survive. A mark is a character that is
put into the text where a finding is expected, and taken out again when the line is known.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mutants.probe import Fact, Key, key_of

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
    NaN or infinity in a gradient, or an exception). `raises`: whether
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


class Program:
    """A script: its text, its syntax tree, and what is known of the values of its expressions."""

    def __init__(self, name: str, text: str, facts: dict[Key, Fact] | None = None) -> None:
        self.name = name
        self.text = text if text.endswith("\n") else text + "\n"
        self.facts = facts or {}
        self.tree = ast.parse(self.text)
        self._lines = self.text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._parents: dict[ast.AST, ast.AST] = {}
        for parent in ast.walk(self.tree):
            for child in ast.iter_child_nodes(parent):
                self._parents[child] = parent

    # -- where nodes are

    def offset(self, line: int, column: int) -> int:
        """The character at a line (from 1) and a column (in bytes of UTF-8, as ast counts)."""
        text = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(text)

    def start(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt)
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.AST) -> str:
        return self.text[self.start(node) : self.end(node)]

    def line_start(self, statement: ast.stmt) -> int:
        return self._starts[statement.lineno - 1]

    def line_end(self, statement: ast.stmt) -> int:
        """Behind the line break of the statement's last line."""
        assert statement.end_lineno is not None
        return self._starts[statement.end_lineno]

    def indent(self, statement: ast.stmt) -> str:
        return self.text[self.line_start(statement) : self.start(statement)]

    def has_own_lines(self, statement: ast.stmt) -> bool:
        """Whether nothing but a comment shares the statement's lines."""
        rest = self.text[self.end(statement) : self.line_end(statement)].strip()
        return not self.indent(statement).strip() and (not rest or rest.startswith("#"))

    # -- the tree

    def walk(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return node

    def function(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        for above in self.ancestors(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                return above
        return self.tree

    def loop(self, node: ast.AST) -> ast.For | ast.While | None:
        """The innermost loop of the same function around a node."""
        for above in self.ancestors(node):
            if isinstance(above, ast.For | ast.While):
                return above
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                return None
        return None

    def body(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that has this one."""
        parent = self._parents[statement]
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(parent, name, [])
            if isinstance(statements, list) and statement in statements:
                return statements
        return [statement]

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement that stands on lines of its own, in the order of the text."""
        found = [n for n in self.walk() if isinstance(n, ast.stmt) and self.has_own_lines(n)]
        yield from sorted(found, key=self.start)

    def calls(self) -> Iterator[ast.Call]:
        found = [n for n in self.walk() if isinstance(n, ast.Call)]
        yield from sorted(found, key=self.start)

    # -- what is known of values

    def fact(self, node: ast.AST) -> Fact | None:
        return self.facts.get(key_of(node)) if isinstance(node, ast.expr) else None

    def kind(self, node: ast.AST) -> str:
        fact = self.fact(node)
        return fact.kind if fact else ""

    def count(self, statement: ast.stmt) -> int:
        """How many times the statement ran, as far as its expressions tell."""
        most = 0
        for node in ast.walk(statement):
            fact = self.fact(node)
            if fact:
                most = max(most, fact.count)
        return most

    # -- edits

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(self.start(node), self.end(node), text, self.statement(node))

    def delete(self, statement: ast.stmt) -> Edit:
        """The statement goes with its lines; `pass` stays where it was alone."""
        if len(self.body(statement)) == 1:
            return self.replace(statement, "pass")
        return Edit(self.line_start(statement), self.line_end(statement), "", statement)

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        indent, at = self.indent(statement), self.line_start(statement)
        return Edit(at, at, "".join(f"{indent}{line}\n" for line in lines), statement)

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        indent, at = self.indent(statement), self.line_end(statement)
        return Edit(at, at, "".join(f"{indent}{line}\n" for line in lines), statement)

    def wrap(self, statement: ast.stmt, header: str) -> Edit:
        """The statement goes into a block of its own: `header` is `with torch.no_grad():`, say."""
        indent = self.indent(statement)
        lines = self.text[self.line_start(statement) : self.line_end(statement)].splitlines(keepends=True)
        inner = "".join(f"    {line}" for line in lines).replace(indent + "    ", indent + "    " + HERE, 1)
        text = f"{indent}{HERE}{header}\n{inner}"
        return Edit(self.line_start(statement), self.line_end(statement), text, statement)

    def define(self, *lines: str) -> Edit:
        """Lines at the top of the module, behind its imports."""
        last = self.tree.body[0]
        for statement in self.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                last = statement
        at = self.line_end(last)
        return Edit(at, at, "".join(f"{line}\n" for line in ("", "", *lines)))

    # -- mutants

    def mutate(self, faults: Sequence[Fault]) -> list[Mutated]:
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
                edits += [Edit(self.start(node), self.start(node), chr(mark)) for node in want.nodes]
                mark += 1
            here = "".join(c for (_, c), want in zip(own, fault.wants, strict=True) if want.here)
            clock = f"ticks_{len(wants)}" if wants else "ticks"
            for edit in fault.edits:
                text = re.sub(r"\bticks\b", clock, edit.text) if "itertools.count()" in _inserted(fault) else edit.text
                edits.append(replace(edit, text=text.replace(HERE, here)))
            wants.append(own)
        marked = self._apply(edits)
        text = _MARKS.sub("", marked)
        compile(text, self.name, "exec", dont_inherit=True)
        lines = marked.splitlines()
        result = []
        for own in wants:
            found = [(rules, tuple(n for n, line in enumerate(lines, 1) if char in line)) for rules, char in own]
            result.append(Mutated(text, tuple(found)))
        return result

    def _apply(self, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> str:
        """The text from `start` to `end` with the edits; a mark within a replaced piece is left out."""
        end = len(self.text) if end is None else end
        changes = sorted(
            (e for e in edits if not (e.is_insertion and _is_mark(e.text))), key=lambda e: (e.start, e.end)
        )
        for one, two in itertools.pairwise(changes):
            if two.start < one.end:
                raise ValueError("edits overlap")
        marks = [e for e in edits if e.is_insertion and _is_mark(e.text)]
        marks = [m for m in marks if not any(c.start < m.start < c.end or c.start == m.start < c.end for c in changes)]
        pieces, at = [], start
        for edit in sorted([*changes, *marks], key=lambda e: (e.start, not e.is_insertion)):
            pieces += [self.text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*pieces, self.text[at:end]])

    def delayed(self, fault: Fault, onset: str) -> Fault | None:
        """The same fault only from half-way on ("late") or every third time ("some"); None where it cannot be."""
        anchors = [e.anchor for e in fault.edits if e.anchor is not None]
        block = self._block(anchors)
        if not block or not all(self.has_own_lines(s) for s in block):
            return None
        count = max(self.count(s) for s in block)
        if count < 12:
            return None
        condition, opposite, extra = self._onset(block[0], count, onset)
        inside = [e for e in fault.edits if e.anchor is not None]
        outside = [e for e in fault.edits if e.anchor is None]
        indent = self.indent(block[0])
        if len(inside) == 1 and inside[0].is_insertion:
            edit = replace(inside[0], text=f"{indent}if {condition}:\n{_indented(inside[0].text)}")
        else:
            start, end = self.line_start(block[0]), self.line_end(block[-1])
            if any(e.start < start or e.end > end for e in inside):
                return None
            changed, old = self._apply(inside, start, end), self.text[start:end]
            if changed.strip() in ("", "pass"):
                text = f"{indent}if {opposite}:\n{_indented(old)}"
            else:
                text = f"{indent}if {condition}:\n{_indented(changed)}{indent}else:\n{_indented(old)}"
            edit = Edit(start, end, text, block[0])
        # a mark on a node of the block would be lost with the text that is replaced
        wants = tuple(self._with_marks_in_text(want, edit) for want in fault.wants)
        return replace(fault, edits=(*outside, *extra, edit), wants=wants, note=f"{fault.note} {onset}".strip())

    def _with_marks_in_text(self, want: Want, edit: Edit) -> Want:
        kept = tuple(n for n in want.nodes if not (edit.start < edit.end and edit.start <= self.start(n) < edit.end))
        return replace(want, nodes=kept)

    def _block(self, anchors: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The neighbors in one body that cover these statements."""
        if not anchors:
            return []
        body = self.body(anchors[0])
        if not all(a in body for a in anchors):
            return []
        places = [body.index(a) for a in anchors]
        return body[min(places) : max(places) + 1]

    def _onset(self, statement: ast.stmt, count: int, onset: str) -> tuple[str, str, list[Edit]]:
        loop = self.loop(statement)
        counter = self._counter(loop, count) if isinstance(loop, ast.For) else None
        extra = []
        if counter:
            name, first = counter
            half = first + count // 2
        else:
            name, half = "next(ticks)", count // 2
            extra = [self.define("import itertools", "", "ticks = itertools.count()")]
        if onset == "late":
            return f"{name} >= {half}", f"{name} < {half}", extra
        return f"{name} % 3 == 2", f"{name} % 3 != 2", extra

    def _counter(self, loop: ast.For, count: int) -> tuple[str, int] | None:
        """The loop's own counter and its first value, where it counts each run of the statement once."""
        names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        for node in ast.walk(loop):
            fact = self.fact(node)
            counts = fact is not None and fact.kind == "int" and fact.most - fact.least + 1 == count
            if fact and counts and isinstance(node, ast.Name) and node.id in names:
                return node.id, fact.least
        return None


def _is_mark(text: str) -> bool:
    return len(text) == 1 and bool(_MARKS.match(text))


def _inserted(fault: Fault) -> str:
    return "".join(edit.text for edit in fault.edits)


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
