"""File descriptors of ours in the script's process, where it may close them and open files under their numbers."""

from __future__ import annotations

import os
from contextlib import suppress


class Descriptor:
    """A descriptor that is written to only while it leads where it led at first: to that device and file."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._target = _target(number)

    @property
    def is_ours(self) -> bool:
        """Whether nothing else was opened under this number."""
        return self._target is not None and _target(self.number) == self._target

    def leads_here(self, number: int) -> bool:
        """Whether that descriptor leads to the same file."""
        return self._target is not None and _target(number) == self._target

    def close(self) -> None:
        """Closes it if it is still ours."""
        if self.is_ours:
            with suppress(OSError):
                os.close(self.number)


def _target(number: int) -> tuple[int, int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_rdev
