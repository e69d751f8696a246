"""The script's recursion limit: our frames below it, and those of our handlers above, are not taken from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: frames that a watched call of torch needs beyond those of the call itself
_HANDLERS = 40


def is_exhausted() -> bool:
    """Whether the script has all but used up its stack: what fails then, fails because of the script."""
    return _depth() + 3 * _HANDLERS >= sys.getrecursionlimit()


def _depth() -> int:
    frame, depth = sys._getframe(1), 0
    while frame.f_back is not None:
        frame = frame.f_back
        depth += 1
    return depth


@contextmanager
def own_limit() -> Iterator[None]:
    """While open, the recursion limit counts from here, as `sys.getrecursionlimit` and `sys.setrecursionlimit` show it."""
    get, put = sys.getrecursionlimit, sys.setrecursionlimit
    extra = _depth() + _HANDLERS

    def getrecursionlimit() -> int:
        """Return the current value of the recursion limit."""
        return get() - extra

    def setrecursionlimit(limit: Any, /) -> None:
        """Set the maximum depth of the Python interpreter stack to n."""
        put(limit + extra if isinstance(limit, int) and limit > 0 else limit)

    put(get() + extra)
    sys.getrecursionlimit, sys.setrecursionlimit = getrecursionlimit, setrecursionlimit
    try:
        yield
    finally:
        if sys.getrecursionlimit is getrecursionlimit:
            sys.getrecursionlimit = get
        if sys.setrecursionlimit is setrecursionlimit:
            sys.setrecursionlimit = put
        put(get() - extra)
