"""Where the user wrote the backward of a custom Function."""

from __future__ import annotations

import inspect
import linecache
import os

from gradtrace.model.site import Site, Stack

#: lines that decorators may take
_DECORATORS = 8


def backward_of(kind: type) -> Stack:
    """The `def` line of the backward of a custom Function, whose node is of type `kind`; empty where there is none."""
    forward = getattr(kind, "_forward_cls", None)
    method = inspect.unwrap(getattr(forward, "backward", None) or (lambda: None))
    code = getattr(method, "__code__", None)
    if forward is None or code is None:
        return ()
    path = code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)
    return (Site(path, _def_line(path, code.co_firstlineno), getattr(code, "co_qualname", code.co_name)),)


def _def_line(path: str, first: int) -> int:
    """The line of the `def` itself: to Python, a function begins at its first decorator."""
    lines = range(first, first + _DECORATORS)
    return next((line for line in lines if linecache.getline(path, line).lstrip().startswith("def ")), first)
