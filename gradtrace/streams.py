"""Keeps stdout clean for a document, such as DOT or JSON, whatever the script prints.

The script is not to notice: its `sys.stdout` remains the same object with the same encoding and buffering. What changes
is where file descriptor 1 leads, and with it the output of C code and of child processes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from gradtrace.errors import OutputError


def claim_stdout() -> TextIO:
    """Gives stdout to the caller alone and leads what anyone else writes there to stderr, until the process ends.

    There is no way back on purpose: threads, children and atexit handlers print after the script's last line. Where
    stdout is closed, the document goes nowhere, as prints would.
    """
    flush(sys.stdout, sys.__stdout__)
    document = _duplicate(1)
    stderr = _duplicate(2)
    os.dup2(stderr, 1)
    os.close(stderr)
    return open(document, "w", encoding="utf-8", errors="backslashreplace")


def flush(*streams: TextIO | None) -> None:
    """Flushes what can be flushed: a standard stream may be None, broken or closed."""
    for stream in filter(None, streams):
        with suppress(OSError, ValueError):
            stream.flush()


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
