"""A live line at the bottom of the terminal while a script runs: how far it is, and what was found so far.

The line has a row of its own, below the rows in which the terminal scrolls, so that nothing the script prints, whoever
prints it, mixes with it. It is drawn when something happens, by whoever makes it happen: no thread is started. Where
stderr is no terminal there is no line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from gradtrace.host.descriptors import Descriptor

#: seconds until the line comes up, and between two drawings
_AFTER, _EVERY = 1.0, 0.2
_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[2K"


class Progress:
    """`facts` gives the steps, the backward calls and the findings so far; `stderr` is a descriptor."""

    def __init__(self, facts: Callable[[], tuple[int, int, int]], stderr: int, *, wanted: bool = True) -> None:
        self._facts = facts
        self._begun = monotonic()
        self._rows = 0
        self._terminal = _terminal(stderr) if wanted else None
        self._due = float("inf") if self._terminal is None else self._begun + _AFTER

    def tick(self) -> None:
        """Something happened."""
        now = monotonic()
        if now >= self._due:
            self._due = now + _EVERY
            self._draw(now - self._begun)

    def close(self) -> None:
        """Gives the row back."""
        if self._terminal is None:
            return
        if self._rows:
            self._write(f"{_SAVE}\x1b[r\x1b[{self._rows};1H{_ERASE}{_RESTORE}")
        self._terminal.close()
        self._terminal, self._due = None, float("inf")

    def _draw(self, seconds: float) -> None:
        assert self._terminal is not None
        try:
            columns, rows = os.get_terminal_size(self._terminal.number)
        except OSError:
            return
        if rows < 3:
            return
        reserved = ""
        if rows != self._rows:
            # down and up again in the same column: the cursor must not be in the row that is taken
            reserved = f"\x1bD\x1b[A{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}"
            self._rows = rows
        line = _line(*self._facts(), seconds)[: columns - 1]
        self._write(f"{reserved}{_SAVE}\x1b[{rows};1H{_ERASE}\x1b[2m{line}\x1b[0m{_RESTORE}")

    def _write(self, text: str) -> None:
        assert self._terminal is not None
        if self._terminal.is_ours:
            with suppress(OSError):
                os.write(self._terminal.number, text.encode())


def _terminal(stderr: int) -> Descriptor | None:
    """A copy of the descriptor, where it leads to a terminal that knows rows."""
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return None
    with suppress(OSError):
        return Descriptor(os.dup(stderr)) if os.isatty(stderr) else None
    return None


def _line(steps: int, calls: int, findings: int, seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"gradtrace  {steps:,} steps  {calls:,} backward calls  {findings} findings  {minutes}:{rest:02}"
