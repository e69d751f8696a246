"""A watch with a debugger: what runs the script sees the one, and the other comes along."""

from __future__ import annotations

from contextlib import ExitStack

from gradtrace.debugger.debugger import Debugger
from gradtrace.watcher.watch import Watch


class DebuggedWatch:
    """Stands for the watch while the script runs."""

    def __init__(self, watch: Watch, debugger: Debugger) -> None:
        self._watch = watch
        self._debugger = debugger
        self._open = ExitStack()

    def __enter__(self) -> DebuggedWatch:
        self._open.enter_context(self._watch)
        self._open.enter_context(self._debugger.attached())
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @property
    def backward_calls(self) -> int:
        return self._watch.backward_calls

    def crashed(self, error: BaseException) -> None:
        """The script ends by this exception."""
        self._watch.crashed(error)
        self._debugger.post_mortem(error)
