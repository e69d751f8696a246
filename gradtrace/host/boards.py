"""Places where the ranks of a job leave short messages for each other, by name: no rank waits there for another."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

#: seconds between the starts of two ranks of one job: what is older is of an earlier job
_STARTING = 120.0


class BoardLostError(Exception):
    """The board cannot be reached any more: the process that kept it has ended."""


class Board(Protocol):
    """Every method may raise `BoardLostError`."""

    def put(self, name: str, message: bytes) -> None:
        """Leaves a message, in place of an earlier one of that name."""

    def get(self, name: str) -> bytes | None:
        """The message of that name; None where there is none so far."""

    def claim(self, name: str) -> bool:
        """Whether this is the first one to claim that name: so for one rank alone."""


class DirectoryBoard:
    """A directory of this machine that only one job of one user has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._since = time.time() - _STARTING
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            self._usable = path.stat().st_uid == os.getuid()
        except OSError:
            self._usable = False

    def put(self, name: str, message: bytes) -> None:
        """Raises `BoardLostError`."""
        part = self.path / f"{name}.{os.getpid()}.part"
        try:
            self._check()
            part.write_bytes(message)
            part.replace(self.path / name)
        except OSError as error:
            raise BoardLostError(str(error)) from error

    def get(self, name: str) -> bytes | None:
        """Raises `BoardLostError`."""
        self._check()
        place = self.path / name
        try:
            return place.read_bytes() if place.stat().st_mtime >= self._since else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BoardLostError(str(error)) from error

    def claim(self, name: str) -> bool:
        """Raises `BoardLostError`."""
        self._check()
        place = self.path / name
        with suppress(OSError):
            if place.stat().st_mtime < self._since:
                place.unlink()
        try:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError as error:
            raise BoardLostError(str(error)) from error
        return True

    @property
    def is_removed(self) -> bool:
        """Whether it was there, and has been taken away."""
        return self._usable and not self.path.is_dir()

    def remove(self) -> None:
        """Takes the directory away, with all that is in it."""
        with suppress(OSError):
            for one in self.path.iterdir():
                one.unlink(missing_ok=True)
            self.path.rmdir()

    def _check(self) -> None:
        if not self._usable:
            raise BoardLostError(f"{self.path} belongs to another user, or cannot be made")


def named_board(name: str) -> DirectoryBoard:
    """The directory of a job that has this name on this machine."""
    return DirectoryBoard(Path(tempfile.gettempdir()) / f"gradtrace-{name}".replace(os.sep, "_"))
