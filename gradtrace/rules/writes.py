"""Words for writes to tensors: the statement that writes, the operation that saved, the tensor itself."""

from __future__ import annotations

import ast

from gradtrace.model.events import Overwritten
from gradtrace.model.site import Site, Stack
from gradtrace.source import syntax, texts

#: longest piece of source in a message
_LONG = 60


def writing(stack: Stack) -> str:
    """The statement that writes, quoted."""
    return _quoted(stack[0], whole=True) if stack else "a write"


def operation(stack: Stack) -> str:
    """The operation that saved a tensor, quoted."""
    return _quoted(stack[0], whole=False) if stack else "an operation"


def what_was_saved(event: Overwritten) -> str:
    """The tensor and who saved it, as the object of a sentence."""
    saver = operation(event.built)
    if event.name:
        return f"`{event.name}` after {saver} saved it for backward"
    shape = f" of shape {list(event.shape)}" if event.shape else ""
    return f"a tensor{shape} that {saver} saved for backward"


def request(event: Overwritten) -> str:
    """The backward call."""
    return f"the backward of `{event.root}`" if event.root else "the backward call"


def _quoted(site: Site, whole: bool) -> str:
    """What is evaluated at a place, quoted; only the statement's beginning where it is long."""
    found = syntax.statement(site.path, site.line, site.column)
    if whole and isinstance(found, (ast.Assign, ast.AugAssign, ast.Expr)):
        text = ast.unparse(found)
    else:
        text = _segment(site) or syntax.line_text(site.path, site.line)
    if not text:
        return f"line {site.line}"
    return f"`{text}`" if len(text) <= _LONG else f"`{text[: _LONG - 4].rstrip()} ...`"


def _segment(site: Site) -> str:
    """The expression that was being evaluated, where it is on one line."""
    if site.column is None or site.end_column is None or site.end_line != site.line:
        return ""
    return texts.line(site.path, site.line)[site.column : site.end_column].strip()
