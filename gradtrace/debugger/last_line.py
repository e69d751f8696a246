"""A frame for what is left of a script that has ended: the variables of its module, at its last line."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def at_last_line(path: str, variables: dict[str, Any], work: Callable[[FrameType], None]) -> None:
    """Calls `work` with a frame that stands in the last line of the file, and whose global variables these are."""
    scope: dict[str, Any] = {}

    def call() -> None:
        # it is no variable of the script's
        scope.clear()
        work(sys._getframe(1))

    scope["call"] = call
    tree = ast.parse("call()", mode="eval")
    ast.increment_lineno(tree, max(0, len(linecache.getlines(path)) - 1))
    eval(compile(tree, path, "eval"), variables, scope)
