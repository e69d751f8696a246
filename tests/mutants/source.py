"""A program as text and syntax tree: questions to it, and the edits that operators put together.

Edits are guided by the tree and made in the text, so that comments, layout and every other line stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Edit
from mutants.probe import Fact, Key, key_of


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
