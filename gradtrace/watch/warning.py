"""Gives warnings the user's place: one raised inside a watched call would point at our handler."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gradtrace.watch import mode
from gradtrace.watch.frames import Frames

_SHOW = "_showwarnmsg"


@contextmanager
def placed(frames: Frames) -> Iterator[None]:
    """While open, warnings that carry our file's name are shown with the file and line of the user's frame.

    Python keeps, in the module that warned, which warnings it has shown; that module would be ours, for every place
    of the user's. So ours is emptied and the user's module is asked instead.
    """
    show: Callable[[Any], None] = getattr(warnings, _SHOW)

    def _showwarnmsg(message: Any) -> None:
        frame = _user_frame(frames) if message.filename == mode.__file__ else None
        if frame is not None:
            vars(mode).pop("__warningregistry__", None)
            if _shown_before(frame, message):
                return
            message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        show(message)

    setattr(warnings, _SHOW, _showwarnmsg)
    try:
        yield
    finally:
        if getattr(warnings, _SHOW) is _showwarnmsg:
            setattr(warnings, _SHOW, show)


def _user_frame(frames: Frames) -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frames.is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _shown_before(frame: FrameType, message: Any) -> bool:
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    key = (str(message.message), message.category, frame.f_lineno)
    seen = bool(registry.get(key))
    registry[key] = True
    return seen and not _always(message.category)


def _always(category: type[Warning]) -> bool:
    actions = (action for action, _, kind, _, _ in warnings.filters if issubclass(category, kind))
    return next(actions, "default") in ("always", "error")
