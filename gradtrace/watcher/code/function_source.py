"""Where the user wrote the backward of a custom Function, or a hook."""

from __future__ import annotations

import inspect
import os
from typing import Any

from gradtrace.model.site import Site, Stack
from gradtrace.source import texts
from gradtrace.watcher.compat import function_of

#: lines that decorators may take
_DECORATORS = 8


def backward_of(kind: type) -> Stack:
    """The `def` line of the backward of a custom Function, whose node is of type `kind`; empty where there is none."""
    forward = function_of(kind)
    return defined(getattr(forward, "backward", None)) if forward is not None else ()


def defined(function: Any) -> Stack:
    """The `def` line of a function, of a partial's own one, or of an object's `__call__`; empty where there is none."""
    own = function if hasattr(function, "__code__") else getattr(function, "func", type(function).__call__)
    code = getattr(inspect.unwrap(own), "__code__", None) if callable(function) else None
    if code is None:
        return ()
    path = code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)
    return (Site(path, _def_line(path, code.co_firstlineno), getattr(code, "co_qualname", code.co_name)),)


def _def_line(path: str, first: int) -> int:
    """The line of the `def` itself: to Python, a function begins at its first decorator."""
    lines = range(first, first + _DECORATORS)
    shown = ((line, texts.line(path, line).lstrip()) for line in lines)
    decorated = texts.line(path, first).lstrip().startswith("@")
    return next((line for line, text in shown if text.startswith("def ")), first) if decorated else first
