"""Ends a run from outside so that the script's `finally` blocks run and a report is written: SIGTERM, and --timeout."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from gradtrace.host.script import StopRun, Terminated


class _Signal:
    """The handler of SIGTERM while the script runs. Stands for the default one: in a child that the script forks, that
    is what it does."""

    def __init__(self) -> None:
        self.timed_out = False
        self._process = os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        else:
            raise StopRun if self.timed_out else Terminated

    def stop(self) -> None:
        """Called in another thread: the time is up."""
        self.timed_out = True
        main = threading.main_thread().ident or 0
        if signal.getsignal(signal.SIGTERM) is self:
            signal.pthread_kill(main, signal.SIGTERM)
        else:  # the script has a handler of its own
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(StopRun))


def unhindered() -> None:
    """From here on SIGTERM is ignored: the script is over, and what is left is its report."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextmanager
def limited(watching: AbstractContextManager[object], seconds: float | None = None) -> Iterator[None]:
    """`watching`, ended by SIGTERM or after so many seconds. Outside of the main thread neither can be."""
    if threading.current_thread() is not threading.main_thread():
        with watching:
            yield
        return
    handler = _Signal()
    timer = threading.Timer(seconds, handler.stop) if seconds else None
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, handler)
    try:
        with watching:
            if timer is not None:
                timer.daemon = True
                timer.start()
            yield
    finally:
        if timer is not None:
            timer.cancel()
        if signal.getsignal(signal.SIGTERM) is handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
