"""A file beside the script that has the name of a module which only gradtrace had loaded, `rich.py` or `secrets.py`.

Under plain python the script would import its own file. So ours step aside while the script runs, and come back for the
report, whose libraries import parts of themselves late.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from types import ModuleType

#: loaded by `python -m` and by the command: what comes before them in `sys.modules` python itself has at its start
_BEGINNING = "runpy", "gradtrace"
_OURS = __name__.partition(".")[0]


class ShadowedModules:
    """The modules that step aside for those in `directory`. Made last of all before the script runs."""

    def __init__(self, directory: str | None) -> None:
        self._path = sys.path[:]
        self._aside: dict[str, ModuleType] = {}
        tops = _shadowed(directory) if directory is not None else set()
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            self._aside[name] = sys.modules.pop(name)

    @contextmanager
    def away(self) -> Iterator[None]:
        """While open, our modules are back in their places, and what they import is found where it was before."""
        tops = {name.partition(".")[0] for name in self._aside}
        theirs = {name: module for name, module in [*sys.modules.items()] if name.partition(".")[0] in tops}
        path = sys.path[:]
        _exchange(theirs, self._aside, self._path)
        try:
            yield
        finally:
            _exchange(self._aside, theirs, path)


def _exchange(out: dict[str, ModuleType], into: dict[str, ModuleType], path: list[str]) -> None:
    for name in out:
        sys.modules.pop(name, None)
    sys.modules.update(into)
    sys.path[:] = path


def _shadowed(directory: str) -> set[str]:
    """The modules loaded by now that python would look for in `directory` first, and find there."""
    loaded = [*sys.modules]
    beginning = min(loaded.index(name) for name in _BEGINNING if name in sys.modules)
    candidates = set(loaded[beginning:]) - {_OURS, "__main__"}
    with suppress(OSError):
        present = {entry.partition(".")[0] for entry in os.listdir(directory or os.curdir)}
        return {name for name in candidates & present if _found_elsewhere(name, directory)}
    return set()


def _found_elsewhere(name: str, directory: str) -> bool:
    ours = getattr(sys.modules[name], "__spec__", None)
    theirs = PathFinder.find_spec(name, [directory])
    if ours is None or theirs is None or not ours.has_location or not theirs.has_location:
        return False  # made by hand, built in, frozen; or a directory without code, which comes last
    return os.path.realpath(ours.origin or "") != os.path.realpath(theirs.origin or "")
