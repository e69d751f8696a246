"""Ends a run from outside so that the script's `finally` blocks run and a report is written: signals, and --timeout."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType, TracebackType
from typing import Any

from gradtrace.host.leaving import leave
from gradtrace.host.script import StopRun, Terminated
from gradtrace.model.finding import Ended

#: so many signals end even the writing of a report
_IMPATIENT = 3
_KILLED = 128 + signal.SIGTERM


class Limits:
    """What SIGTERM does while the script runs, and SIGINT and SIGTERM while its report is written.

    The first SIGTERM raises `Terminated` in the script, as the time limit raises `StopRun`; the second ends the process,
    after its report. Both signals then wait until the report is written; the third ends that, too. Outside of the main
    thread no signal is handled.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._main = threading.current_thread() is threading.main_thread()
        self._process = os.getpid()
        self._timed_out = False
        self._terminated = False
        self._waiting = 0
        #: the handlers to put back after the report
        self._before: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    @contextmanager
    def script_runs(self) -> Iterator[None]:
        """Open while the script's code runs."""
        if not self._main:
            yield
            return
        if self._seconds is not None:
            self._timer = threading.Timer(self._seconds, self._time_is_up)
            self._timer.daemon = True
            self._timer.start()
        with self._unnoticed():
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                yield
            finally:
                self.script_ended()

    @contextmanager
    def _unnoticed(self) -> Iterator[None]:
        """To the script our handler is the default one, also where it saves that and puts it back."""
        get, put = signal.getsignal, signal.signal

        @wraps(get)
        def getsignal(signalnum: int) -> Any:
            return self._shown(get(signalnum))

        @wraps(put)
        def set_handler(signalnum: int, handler: Any) -> Any:
            ours = signalnum == signal.SIGTERM and handler == signal.SIG_DFL and os.getpid() == self._process
            return self._shown(put(signalnum, self._terminate if ours else handler))

        signal.getsignal, signal.signal = getsignal, set_handler
        try:
            yield
        finally:
            if signal.getsignal is getsignal:
                signal.getsignal = get
            if signal.signal is set_handler:
                signal.signal = put

    def _shown(self, handler: Any) -> Any:
        return signal.SIG_DFL if handler == self._terminate else handler

    def script_ended(self) -> None:
        """From here on signals wait until the report is written."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._main or self._before or os.getpid() != self._process:
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = self._shown(signal.getsignal(number))
            signal.signal(number, self._wait)

    def __enter__(self) -> Limits:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The report is written."""
        for number, handler in self._before.items():
            # None stands for a handler that was not set from Python
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            _die(number)
        elif self._timed_out:
            raise StopRun
        elif self._terminated:
            leave(Ended("killed", _KILLED))
        else:
            self._terminated = True
            raise Terminated

    def _wait(self, number: int, frame: FrameType | None) -> None:
        self._waiting += 1
        if self._waiting >= _IMPATIENT or os.getpid() != self._process:
            _die(number)

    def _time_is_up(self) -> None:
        """Called in another thread."""
        self._timed_out = True
        main = threading.main_thread().ident or 0
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.pthread_kill(main, signal.SIGTERM)
        else:  # the script has a handler of its own
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(StopRun))


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
