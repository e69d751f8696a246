"""A session in which the script can be stopped: between two pieces of watching, never within one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from gradtrace.model.events import Event
from gradtrace.watcher.code.frames import Frames
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.session import Session

T = TypeVar("T")


class PausingSession(Session):
    """Calls `pause` each time that a piece of watching has ended: whatever runs there is free to stop the script, and to
    end its run by a `StopRun`."""

    def __init__(
        self, listener: Callable[[Event], None], frames: Frames, debug: bool, pause: Callable[[], None]
    ) -> None:
        super().__init__(listener, frames, debug)
        self._pause = pause
        self._depth = 0

    @compiled.around
    def guarded(self, work: Callable[..., T], *args: Any) -> T | None:
        """As that of every session; then the script may be stopped."""
        self._depth += 1
        try:
            done = super().guarded(work, *args)
        finally:
            self._depth -= 1
        if not self._depth and self.in_watched_thread():
            self._pause()
        return done

    @contextmanager
    def listening(self, listener: Callable[[Event], None]) -> Iterator[None]:
        """While open, events go to this listener alone."""
        own, self._listener = self._listener, listener
        try:
            yield
        finally:
            self._listener = own
