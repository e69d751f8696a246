"""Where a finding points to, and the questions that makers of edits ask about that place."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from gradtrace.fixes.edits import SourceFile
from gradtrace.model.finding import Finding
from gradtrace.model.site import Site

LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SNIPPET = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One edit of one file: what it does, in words, and the whole new text."""

    title: str
    path: str
    text: str


class Place:
    """A line of a finding, its own or a related one: its statement, and the training loop around it."""

    def __init__(self, finding: Finding, site: Site, file: SourceFile) -> None:
        self.finding = finding
        self.site = site
        self.file = file
        self.statement = file.statement_at(site.line)

    @property
    def scope(self) -> ast.AST:
        """The innermost loop or function around the statement; the file where there is none."""
        found = self.file.around(self.statement, (*LOOPS, *FUNCTIONS)) if self.statement is not None else None
        return found if found is not None else self.file.tree

    @property
    def function(self) -> ast.AST:
        found = self.file.around(self.statement, FUNCTIONS) if self.statement is not None else None
        return found if found is not None else self.file.tree

    @property
    def related(self) -> list[ast.stmt]:
        """The statements of the related lines in this file, in their order."""
        found = []
        for one in self.finding.related:
            statement = self.file.statement_at(one.site.line) if one.site.path == self.file.path else None
            if statement is not None and statement is not self.statement and statement not in found:
                found.append(statement)
        return found

    @property
    def around(self) -> list[ast.stmt]:
        """The statement and those of the related lines."""
        return [*([self.statement] if self.statement is not None else []), *self.related]

    def statements(self, method: str) -> list[ast.stmt]:
        """The statements that call a method: in the scope, else in the function, else in the file."""
        for within in (self.scope, self.function, self.file.tree):
            found: list[ast.stmt] = []
            for call in self.file.calls(within, method):
                statement = self.file.statement_of(call)
                if statement is not None and statement not in found and not isinstance(statement, FUNCTIONS):
                    found.append(statement)
            if found:
                return found
        return []

    def optimizers(self) -> list[str]:
        """The expressions whose `step()` is called, as they are written near the finding first."""
        found: list[str] = []
        for within in (self.scope, self.function, self.file.tree):
            for call in self.file.calls(within, "step"):
                if isinstance(call.func, ast.Attribute):
                    name = self.file.source(call.func.value)
                    if call.args and "scaler" in name.lower():
                        name = self.file.source(call.args[0])  # scaler.step(optimizer)
                    if name not in found and not re.search("sched|scaler|env", name, re.IGNORECASE):
                        found.append(name)
            if found:
                return found
        return found

    def snippets(self) -> Iterator[str]:
        """The code that the finding's help says to type."""
        yield from dict.fromkeys(_SNIPPET.findall(self.finding.help))

    def edit(self, title: str, text: str | None) -> Iterator[Candidate]:
        if text is not None and text != self.file.text:
            yield Candidate(title, self.file.path, text)


Maker: TypeAlias = Callable[[Place], Iterator[Candidate]]


def name_of(call: ast.Call) -> str:
    """The last part of what is called: `step` of `optimizer.step()`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def without_keyword(file: SourceFile, call: ast.Call, name: str) -> str | None:
    """The text of a call without an argument; None where it has none of this name."""
    kept = [one for one in call.keywords if one.arg != name]
    if len(kept) == len(call.keywords):
        return None
    given = [file.source(one) for one in call.args]
    for one in kept:
        value = file.source(one.value)
        given.append(f"{one.arg}={value}" if one.arg else f"**{value}")
    return f"{file.source(call.func)}({', '.join(given)})"


def with_keyword(file: SourceFile, call: ast.Call, keyword: str) -> str:
    """The text of a call with one more argument."""
    inside = file.source(call).rstrip()[:-1].rstrip().rstrip(",")
    comma = "" if inside.endswith("(") else ", "
    return f"{inside}{comma}{keyword})"


def in_parentheses(file: SourceFile, node: ast.expr) -> str:
    """The text of an expression that a method can be called on."""
    source = file.source(node)
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return source if simple else f"({source})"


def is_module(node: ast.expr) -> bool:
    """Whether functions are called on it: `torch`, `F`."""
    return ast.unparse(node) in (
        "F",
        "torch",
        "functional",
        "nn.functional",
        "torch.nn.functional",
        "torch.linalg",
        "np",
    )


def is_read(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    """Whether the value of a variable, an attribute or an item is used."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
