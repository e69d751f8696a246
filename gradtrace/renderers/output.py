"""Where a result goes: a file, stdout, or a stdout that the script cannot reach."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gradtrace.errors import OutputError
from gradtrace.host import streams
from gradtrace.renderers.paper import Paper

_PROGRAMS = {".py", ".pyw", ".pyi", ".pyc", ".ipynb", ".so", ".pyd"}


class Out:
    """A place for one result, made before the script runs. `claim` keeps the script's own output off stdout.

    Raises `OutputError` where the file could not be written to.
    """

    def __init__(self, path: Path | None, color: bool | None = None, detail: int = 0, *, claim: bool = False) -> None:
        self._path = path.absolute() if path else None
        if self._path is not None:
            must_be_writable(self._path)
        self._stream: streams.KeptStdout | None = None
        if self._path is None:
            self._stream = streams.claim_stdout() if claim else streams.keep_stdout()
        self.paper = self._paper(color, detail)

    def _paper(self, color: bool | None, detail: int) -> Paper:
        """Read before the run: the script may change the environment."""
        terminal = self._stream is not None and self._stream.isatty()
        if color is None:
            color = terminal and not os.environ.get("NO_COLOR")
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() and int(columns) else 100
        encoding = self._stream.encoding if self._stream else "utf-8"
        return Paper(encoding or "utf-8", None if terminal else width, color, detail)

    def move(self, path: Path) -> None:
        """The result goes to this file instead."""
        self._path = path

    def write(self, text: str | None) -> None:
        if text is None:
            return
        if self._path is not None:
            streams.put_file(self._path, text.encode(errors="backslashreplace"))
        elif self._stream is not None:
            streams.flush(sys.stdout, sys.__stdout__)
            self._stream.deliver(text)


def must_be_writable(path: Path) -> None:
    """Said before the run, not after an hour. A Python file is never overwritten: it is likely one of the program's."""
    if path.suffix.lower() in _PROGRAMS and path.exists():
        raise OutputError(f"{path} is a program, which would be overwritten; name another file")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: name a file in a directory that exists and is writable")
