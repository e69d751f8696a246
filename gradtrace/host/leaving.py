"""Ways in which a process ends past every `finally`: `os._exit`, `os.exec*`, a second SIGTERM. The report comes first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from gradtrace.host.streams import announce, flush
from gradtrace.model.finding import Ended

_running: list[Leaving] = []


def leave(ended: Ended) -> NoReturn:
    """Ends this process now, after the report of the run, if one is going on."""
    if _running:
        _running[-1].leave(ended)
    os._exit(ended.status)


class Leaving:
    """`at_exit` writes the report and returns the exit status; `argv` is the script's own, `used` says whether the run
    has shown anything yet that would be lost."""

    def __init__(self, at_exit: Callable[[Ended], int], argv: Sequence[str], used: Callable[[], bool]) -> None:
        self._at_exit = at_exit
        self._argv = tuple(argv)
        self._used = used
        self._process = os.getpid()
        self._exit, self._execv, self._execve = os._exit, os.execv, os.execve

    @contextmanager
    def announced(self) -> Iterator[None]:
        """While open, this process reports before it leaves; forked children just leave."""
        os._exit, os.execv, os.execve = self._announced_exit, self._announced_execv, self._announced_execve
        _running.append(self)
        try:
            yield
        finally:
            _running.remove(self)
            self._restore()

    def leave(self, ended: Ended) -> NoReturn:
        """Reports and ends the process."""
        status = ended.status
        try:
            if os.getpid() == self._process:
                self._restore()
                status = self._at_exit(ended)
                flush(sys.stdout, sys.stderr)
        finally:
            self._exit(status)

    def _restore(self) -> None:
        os._exit, os.execv, os.execve = self._exit, self._execv, self._execve

    def _announced_exit(self, status: int) -> NoReturn:
        self.leave(Ended("exit", status & 0xFF))

    def _announced_execv(self, path: Any, argv: Any, /) -> NoReturn:
        self._execv(path, self._replacing(path, argv))

    def _announced_execve(self, path: Any, argv: Any, env: Any) -> NoReturn:
        self._execve(path, self._replacing(path, argv), env)

    def _replacing(self, path: Any, argv: Any) -> Any:
        """The arguments for the program that takes the place of this one: where it is the same script, watched again."""
        if os.getpid() != self._process or not _can_run(path):
            return argv
        again = self._watched_again(path, argv)
        if again is None or self._used():
            self._at_exit(Ended("exit", 0))
        if again is None:
            announce(f"the script replaced itself by {os.fsdecode(path)}, which is not watched")
        return argv if again is None else again

    def _watched_again(self, path: Any, argv: Any) -> list[str] | None:
        """Our own command line with the new arguments; None where it is not the same script under the same Python."""
        words = [os.fsdecode(word) for word in argv]
        ours = sys.orig_argv[: len(sys.orig_argv) - len(self._argv)]
        same_start = sys.orig_argv[len(ours) :] == [*self._argv] and words[1:2] == [*self._argv[:1]]
        if not same_start or not os.path.samefile(os.fsdecode(path), sys.executable):
            return None
        return [*ours, *words[1:]]


def _can_run(path: Any) -> bool:
    """Whether such a program is there: where none is, the script goes on with an error."""
    try:
        return shutil.which(os.path.abspath(os.fsdecode(path))) is not None
    except (TypeError, ValueError):
        return False
