"""Reports which line of the user's code runs next: by `sys.monitoring` where there is one, else by `sys.settrace`.

Both see every function that is entered; only in those that the listener wants do they look at lines. No torch here.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any, Protocol

#: how a function that has not ended raises: no error of anybody's
_QUIET = StopIteration, StopAsyncIteration, GeneratorExit
_NAME = "gradtrace"


class Listener(Protocol):
    """The callbacks. None of these may raise an error."""

    @abstractmethod
    def wants(self, code: CodeType) -> bool:
        """Whether the lines of this code are of interest."""

    @abstractmethod
    def entered(self, frame: FrameType) -> None:
        """A function begins, or a generator goes on."""

    @abstractmethod
    def reached(self, frame: FrameType, line: int) -> None:
        """A line is about to run."""

    @abstractmethod
    def raised(self, frame: FrameType, error: BaseException) -> None:
        """An error was raised in a line, or came up to it from a function that it called."""

    @abstractmethod
    def left(self, frame: FrameType) -> None:
        """The function has ended, by whatever way, or a generator pauses."""


@contextmanager
def traced(listener: Listener) -> Iterator[Callable[[], None]]:
    """Reports this thread's lines to the listener; gives what ends that at once, for a forked child."""
    with (_monitored if _free_tool() is not None else _settraced)(listener) as stop:
        yield stop


def _free_tool() -> int | None:
    """A number for us among the six that `sys.monitoring` has for tools; None where it is missing or full."""
    monitoring: Any = getattr(sys, "monitoring", None)
    return next((number for number in (4, 3, 2) if monitoring and monitoring.get_tool(number) is None), None)


def callbacks() -> list[CodeType]:
    """The code of what the interpreter calls: everything else here runs inside of that."""
    outer = (traces.__wrapped__.__code__ for traces in (_settraced, _monitored))  # type: ignore[attr-defined]
    return [inner for code in outer for inner in code.co_consts if isinstance(inner, CodeType)]


@contextmanager
def _settraced(listener: Listener) -> Iterator[Callable[[], None]]:
    # the code is kept, so that its id stays its own
    wanted: dict[int, tuple[bool, CodeType]] = {}

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        known = wanted.get(id(code))
        if known is None:
            known = wanted[id(code)] = listener.wants(code), code
        if not known[0]:
            return None
        listener.entered(frame)
        return follow

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            listener.reached(frame, frame.f_lineno)
        elif event == "return":
            listener.left(frame)
        elif event == "exception" and not issubclass(argument[0], _QUIET):
            listener.raised(frame, argument[1])
        return follow

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield lambda: sys.settrace(None)
    finally:
        if sys.gettrace() is enter:
            sys.settrace(before)
        wanted.clear()


@contextmanager
def _monitored(listener: Listener) -> Iterator[Callable[[], None]]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    events = monitoring.events
    tool = _free_tool()
    thread = threading.get_ident()
    wanted: set[CodeType] = set()

    def enter(code: CodeType, offset: int) -> Any:
        if code not in wanted:
            if not listener.wants(code):
                return monitoring.DISABLE
            wanted.add(code)
            monitoring.set_local_events(tool, code, events.LINE | events.PY_RETURN | events.PY_YIELD)
        if threading.get_ident() == thread:
            listener.entered(sys._getframe(1))
        return None

    def reach(code: CodeType, line: int) -> None:
        if threading.get_ident() == thread:
            listener.reached(sys._getframe(1), line)

    def leave(code: CodeType, offset: int, value: Any) -> None:
        if code in wanted and threading.get_ident() == thread:
            listener.left(sys._getframe(1))

    def throw(code: CodeType, offset: int, error: BaseException) -> None:
        if code in wanted and threading.get_ident() == thread:
            listener.entered(sys._getframe(1))

    def fail(code: CodeType, offset: int, error: BaseException) -> None:
        if code in wanted and threading.get_ident() == thread and not isinstance(error, _QUIET):
            listener.raised(sys._getframe(1), error)

    def stop() -> None:
        monitoring.set_events(tool, 0)
        for code in wanted:
            monitoring.set_local_events(tool, code, 0)

    callbacks = {
        events.PY_START: enter,
        events.PY_RESUME: enter,
        events.PY_THROW: throw,
        events.LINE: reach,
        events.PY_RETURN: leave,
        events.PY_YIELD: leave,
        events.PY_UNWIND: leave,
        events.RAISE: fail,
    }
    monitoring.use_tool_id(tool, _NAME)
    for event, callback in callbacks.items():
        monitoring.register_callback(tool, event, callback)
    everywhere = events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND | events.RAISE
    monitoring.set_events(tool, everywhere)
    try:
        yield stop
    finally:
        with suppress(ValueError):
            stop()
            for event in callbacks:
                monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        # what was switched off with DISABLE is so for good otherwise
        monitoring.restart_events()
