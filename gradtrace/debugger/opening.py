"""How far the graph of a command is opened: `graph loss --depth 2 --open encoder`, as on the command line of show."""

from __future__ import annotations

import re

from gradtrace.errors import UsageError
from gradtrace.graphs.fold import Folding

_OPTION = re.compile(r"(?:^|\s)--(depth|open)\b(?:[\s=]+([\w.]+))?")


def read(text: str) -> tuple[str, Folding]:
    """What was typed, without these options, and what they say. Raises `UsageError` where one has no value."""
    depth: int | None = None
    modules: list[str] = []
    for option, value in _OPTION.findall(text):
        if option == "open" and value:
            modules.append(value)
        elif value.isdecimal():
            depth = int(value)
        else:
            raise UsageError("give a number after --depth, and the name of a module after --open")
    return _OPTION.sub("", text).strip(), Folding(depth, modules)
