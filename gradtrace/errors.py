"""Everything gradtrace raises on purpose, and the exit codes of the command line.

    GradtraceError          exit code 2: gradtrace could not do what was requested
    ├── UsageError          an option or argument that cannot be meant
    ├── ScriptError         the script cannot be started: missing, unreadable, not Python
    ├── DocumentError       a file that was named cannot be used: saved graph, settings, baseline, recording
    ├── TorchError          a torch that gradtrace does not support
    └── OutputError         the result cannot be written or drawn: no `dot` program, unwritable file

The message is one line for the user: what happened, where, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every command, as documented in `gradtrace --help`."""

    OK = 0
    FINDINGS = 1
    ERROR = 2
    SCRIPT_FAILED = 3
    NOTHING_TO_CHECK = 4


class GradtraceError(Exception):
    """gradtrace could not do what the user wanted; the message says why and what to do."""


class UsageError(GradtraceError):
    """An option or argument that cannot be meant."""


def first_line(error: BaseException) -> str:
    """The class and message of any exception in one line, as events and findings name it: "RuntimeError: message"."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def no_such(kind: str, word: str, known: Iterable[str]) -> UsageError:
    """Says that there is no `kind` called `word`, and which one was probably meant."""
    names = sorted(set(known))
    near = get_close_matches(word, names, n=1) or [name for name in names if word and name.startswith(word)]
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    return UsageError(f"no {kind} is called {word!r}; {meant}")


class ScriptError(GradtraceError):
    """The script cannot be started: missing, unreadable, not Python."""


class DocumentError(GradtraceError):
    """A file that gradtrace was given cannot be used (a saved graph, settings, a baseline, a recording): missing, broken
    or of a newer gradtrace."""


class TorchError(GradtraceError):
    """The torch that is installed is too old, or too new, for gradtrace."""


class OutputError(GradtraceError):
    """The result cannot be written or drawn."""
