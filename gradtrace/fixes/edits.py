"""Edits of one source file that leave all else in it as it is: formatting, comments, line ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property


class SourceFile:
    """The text of a file and its syntax tree. Edits return new texts; None where one cannot be made safely.

    Raises `SyntaxError` where the text does not parse.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text)
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """All statements, in the order of their lines."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement whose text, of a compound one its head, is on this line."""
        found = None
        for one in self.statements:
            if _start_of_head(one) <= line <= _end_of_head(one):
                found = one
        return found

    def around(self, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
        """The nearest node of one of these kinds that this one is part of."""
        at = self._parents.get(node)
        while at is not None and not isinstance(at, kinds):
            at = self._parents.get(at)
        return at

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements in a row that this one belongs to."""
        parent = self._parents.get(statement)
        for name in ("body", "orelse", "finalbody", "handlers"):
            found = getattr(parent, name, None)
            if isinstance(found, list) and statement in found:
                return found
        return [statement]

    def calls(self, within: ast.AST, method: str) -> Iterator[ast.Call]:
        """The calls of a method, or a function, of this name."""
        for node in ast.walk(within):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == method:
                    yield node

    def source(self, node: ast.expr) -> str:
        """The text of an expression as it is written."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def source_of(self, statement: ast.stmt) -> str:
        """The text of a statement as it is written."""
        return ast.get_source_segment(self.text, statement) or ast.unparse(statement)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The statement that an expression is part of."""
        found = node if isinstance(node, ast.stmt) else self.around(node, (ast.stmt,))
        return found if isinstance(found, ast.stmt) else None

    # edits

    def insert_before(self, statement: ast.stmt, code: str) -> str:
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
        return self._with(first - 1, first - 1, [self._line(code, self._indent(statement))])

    def insert_after(self, statement: ast.stmt, code: str) -> str | None:
        if _leaves(statement):
            return None
        end = statement.end_lineno or statement.lineno
        return self._with(end, end, [self._line(code, self._indent(statement))])

    def delete(self, statement: ast.stmt) -> str | None:
        if not self._has_own_lines(statement):
            return None
        end = statement.end_lineno or statement.lineno
        if len(self.block(statement)) == 1:
            return self._with(statement.lineno - 1, end, [self._line("pass", self._indent(statement))])
        return self._with(statement.lineno - 1, end, [])

    def move(self, statement: ast.stmt, after: ast.stmt) -> str | None:
        """The statement as the next one after another, with the other's indentation."""
        if not self._has_own_lines(statement) or not self._has_own_lines(after) or _leaves(statement) or _leaves(after):
            return None
        end = statement.end_lineno or statement.lineno
        own = self.lines[statement.lineno - 1 : end]
        before, wanted = self._indent(statement), self._indent(after)
        moved = [wanted + line.removeprefix(before) if line.strip() else line for line in own]
        target = after.end_lineno or after.lineno
        lines = self.lines[:]
        if not lines[target - 1].endswith("\n"):
            lines[target - 1] += "\n"
        lines[target:target] = moved
        start = statement.lineno - 1 + (len(moved) if target < statement.lineno else 0)
        del lines[start : start + len(moved)]
        return "".join(lines)

    def replace(self, node: ast.expr, code: str) -> str:
        start, end = self._span(node)
        return self.text[:start] + code + self.text[end:]

    def replace_all(self, changes: Sequence[tuple[ast.expr | ast.stmt, str]]) -> str | None:
        """Several nodes at once, none of which lies in another."""
        spans = sorted((self._span(node), code) for node, code in changes)
        text, end = "", 0
        for (start, stop), code in spans:
            if start < end:
                return None
            text += self.text[end:start] + code
            end = stop
        return text + self.text[end:]

    def insert_in_body(self, container: ast.AST, code: str) -> str | None:
        """As the first statement of a loop or function, below its docstring."""
        body = getattr(container, "body", None)
        if not isinstance(body, list) or not body or body[0].lineno == getattr(container, "lineno", 0):
            return None
        first = body[0]
        is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self.insert_after(first, code) if is_docstring else self.insert_before(first, code)

    def move_before(self, statement: ast.stmt, other: ast.stmt) -> str | None:
        """The statement in front of one that stands above it, with the other's indentation."""
        if not self._has_own_lines(statement) or other.lineno >= statement.lineno or _leaves(statement):
            return None
        own = self.lines[statement.lineno - 1 : statement.end_lineno or statement.lineno]
        before, wanted = self._indent(statement), self._indent(other)
        moved = [wanted + line.removeprefix(before) if line.strip() else line for line in own]
        kept = SourceFile(self.path, self.delete(statement) or self.text)
        return kept._with(other.lineno - 1, other.lineno - 1, moved)

    def siblings(self, one: ast.stmt, other: ast.stmt) -> tuple[ast.stmt, ast.stmt] | None:
        """The statements of one block that these two are, or are part of; None where it is the same one."""
        above = list(self._lineage(one))
        for at in self._lineage(other):
            for found in above:
                if self.parent(found) is self.parent(at) and found in self.block(at):
                    return (found, at) if found is not at else None
        return None

    def _lineage(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        at: ast.AST | None = statement
        while at is not None:
            if isinstance(at, ast.stmt):
                yield at
            at = self._parents.get(at)

    def replace_statement(self, statement: ast.stmt, code: str) -> str:
        """Further lines of the code get the statement's indentation."""
        start, end = self._span(statement)
        return self.text[:start] + code.replace("\n", "\n" + self._indent(statement)) + self.text[end:]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def put_under(self, statements: Sequence[ast.stmt], head: str) -> str | None:
        """The statements, which follow each other, below a new head such as `with torch.no_grad():`."""
        first, last = statements[0], statements[-1]
        if not all(map(self._has_own_lines, statements)):
            return None
        start, end = first.lineno - 1, last.end_lineno or last.lineno
        indented = ["    " + line if line.strip() else line for line in self.lines[start:end]]
        return self._with(start, end, [self._line(head, self._indent(first)), *indented])

    def unwrap(self, block: ast.With) -> str | None:
        """The statements of a `with` without it."""
        if not self._has_own_lines(block) or block.body[0].lineno == block.lineno:
            return None
        outer, inner = self._indent(block), self._indent(block.body[0])
        first, end = block.body[0].lineno - 1, block.end_lineno or block.lineno
        moved = [outer + line.removeprefix(inner) if line.startswith(inner) else line for line in self.lines[first:end]]
        return self._with(block.lineno - 1, end, moved)

    def _with(self, start: int, end: int, new: list[str]) -> str:
        lines = self.lines[:]
        if start and start == len(lines) and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines[start:end] = new
        return "".join(lines)

    def _indent(self, statement: ast.stmt) -> str:
        line = self.lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    @staticmethod
    def _line(code: str, indent: str) -> str:
        return "".join(f"{indent}{line}\n" for line in code.split("\n"))

    def _has_own_lines(self, statement: ast.stmt) -> bool:
        """No other statement shares its first or last line."""
        own = set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        for other in self.block(statement):
            if other is not statement and own & {other.lineno, other.end_lineno}:
                return False
        parent = self._parents.get(statement)
        return getattr(parent, "lineno", 0) not in own

    def column(self, node: ast.expr) -> int:
        """Where it begins in its line, in characters."""
        return len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="ignore"))

    def _offset(self, line: int, column: int) -> int:
        """Characters before this place; the tree counts columns in bytes of UTF-8."""
        before = sum(map(len, self.lines[: line - 1]))
        return before + len(self.lines[line - 1].encode()[:column].decode(errors="ignore"))


def _end_of_head(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if body:
        return max(statement.lineno, int(body[0].lineno) - 1)
    return statement.end_lineno or statement.lineno


def _start_of_head(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(int(one.lineno) for one in decorators)])


def _leaves(statement: ast.stmt) -> bool:
    """Nothing below it in its block would run."""
    return isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue))
