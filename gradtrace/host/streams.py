"""Where results go: into a file, or to a stdout kept clean for a document (DOT, JSON) whatever the script prints.

The script is not to notice: its `sys.stdout` remains the same object with the same encoding and buffering. What changes
is where file descriptor 1 leads, and with it the output of C code and of child processes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from gradtrace.errors import OutputError
from gradtrace.escapes import one_line
from gradtrace.host.descriptors import Descriptor


class KeptStdout:
    """A stdout of our own for later: scripts close theirs, put another in its place, or open files under its number."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._descriptor = Descriptor(_duplicate(1))
        self._stream = _writer(self._descriptor.number, encoding)

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def deliver(self, text: str) -> None:
        """Writes the text, to stderr where the script closed our copy. Raises `OutputError`."""
        if self._descriptor.is_ours:
            deliver(text, self._stream)
        else:
            deliver(text, _writer(1 if self._descriptor.leads_here(1) else 2, self.encoding))


def keep_stdout() -> KeptStdout | None:
    """None where it is closed."""
    stdout = sys.__stdout__
    return None if stdout is None else KeptStdout(stdout.encoding)


def claim_stdout() -> KeptStdout:
    """Gives stdout to the caller alone and leads what anyone else writes there to stderr, until the process ends.

    There is no undoing this on purpose: threads, children and atexit handlers print after the script's last line. Where
    stdout is closed, the document goes nowhere, as prints would.
    """
    flush(sys.stdout, sys.__stdout__)
    document = KeptStdout("utf-8")
    stderr = _duplicate(2)
    os.dup2(stderr, 1)
    os.close(stderr)
    return document


def _writer(descriptor: int, encoding: str) -> TextIO:
    return open(descriptor, "w", encoding=encoding, errors="backslashreplace", closefd=False)


def announce(message: str) -> None:
    """Prints a line on stderr, even if the script has closed its own."""
    flush(sys.stderr)
    if sys.__stderr__ is not None:
        with suppress(OSError):
            os.write(2, f"gradtrace: {one_line(message)}{os.linesep}".encode(errors="backslashreplace"))


def flush(*streams: TextIO | None) -> None:
    """Flushes what can be flushed: a standard stream may be None, broken, closed or something of the user's."""
    for stream in streams:
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]


def deliver(text: str, stream: TextIO) -> None:
    """Writes and flushes. A reader that went away, as `head` does, is no error; a full disk is an `OutputError`."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _abandon(stream)
    except OSError as error:
        _abandon(stream)
        raise OutputError(f"cannot write the result to stdout: {error.strerror}; send it to another place") from error


def put_file(path: Path, content: bytes) -> None:
    """Writes beside and renames, so that no reader meets half a file; what is no regular file is written to directly."""
    try:
        target = path.resolve() if path.is_file() else path
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(content)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}; name another place after -o") from None


def _duplicate(descriptor: int) -> int:
    """A private copy that children do not inherit; of the null device where `descriptor` is closed.

    It lies beyond the three standard numbers: one of those may be free, and a stranger would then write into the copy.
    """
    try:
        copy = os.dup(descriptor)
    except OSError:
        copy = os.open(os.devnull, os.O_WRONLY)
    if copy > 2:
        return copy
    try:
        return _duplicate(descriptor)
    finally:
        os.close(copy)


def _abandon(stream: TextIO) -> None:
    """Lets what is still buffered go nowhere: Python would try again at exit and complain there."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
