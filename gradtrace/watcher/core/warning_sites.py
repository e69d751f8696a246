"""Gives warnings the place that they have without us: Python finds it by counting frames, and watching adds some."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from traceback import walk_stack, walk_tb
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from gradtrace.host.tracebacks import without_our_frames
from gradtrace.watcher.code.frames import START
from gradtrace.watcher.compat import SHOW_WARNING, show_warning
from gradtrace.watcher.core import mode
from gradtrace.watcher.core.patches import patched

#: what Python says where the stack has fewer frames than it has to count
_BEYOND = ("<sys>", 0, vars(sys)) if sys.version_info >= (3, 12) else ("sys", 1, vars(sys))


@contextmanager
def placed(failed: Callable[[Exception], None]) -> Iterator[None]:
    """While open, a warning whose place is wrong because of us is raised once more, at its own place.

    Filters, and the lists in which modules keep what they have shown, then see that place too. For this
    whatever seems to come from our handler must pass the filters at first. `failed` gets internal errors.
    """
    if show_warning is None:
        yield
        return

    def placing(show: Callable[[Any], None]) -> Callable[[Any], None]:
        def _showwarnmsg(message: Any) -> None:
            try:
                moved = _moved(message, sys._getframe(1))
            except Exception as error:  # noqa: BLE001 - the warning must come even so
                failed(error)
                moved = None
            if moved is None:
                show(message)
            else:
                _raise_at(moved.frame, message)

        return _showwarnmsg

    with patched(warnings, SHOW_WARNING, placing):
        warnings.filterwarnings("always", module=re.escape(mode.__name__) + r"\Z")
        ours = warnings.filters[0]
        try:
            yield
        finally:
            with suppress(ValueError):  # the script may have emptied the list
                warnings.filters.remove(ours)  # type: ignore[attr-defined]


class _Moved(NamedTuple):
    """Where a warning belongs; None beyond the outermost frame."""

    frame: FrameType | None


def _moved(message: Any, frame: FrameType) -> _Moved | None:
    """Where a warning belongs whose place is wrong because of us, shown from `frame`; None where it is right."""
    stack = [] if frame.f_code is _raise_at.__code__ else [frame for frame, _ in walk_stack(frame)]
    at = next((at for at, frame in enumerate(stack) if _place(frame) == (message.filename, message.lineno)), None)
    own = without_us(stack)
    if at is None or own[at : at + 1] == stack[at : at + 1]:
        return None
    _forget(stack[at].f_globals, message)
    return _Moved(own[at] if at < len(own) else None)


def _place(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno


def without_us(stack: list[FrameType]) -> list[FrameType]:
    """The stack, innermost frame first, as it were without us."""
    traceback: TracebackType | None = None
    for frame in stack:
        if frame.f_code is START:
            break
        traceback = TracebackType(traceback, frame, frame.f_lasti, frame.f_lineno)
    return [frame for frame, _ in walk_tb(without_our_frames(traceback))][::-1]


def _forget(scope: dict[str, Any], message: Any) -> None:
    """Takes the warning off the list of those that a module has shown."""
    shown = scope.get("__warningregistry__", {})
    what = str(message.message), message.category
    for key in (what, (*what, 0), (*what, message.lineno)):
        shown.pop(key, None)


def _raise_at(frame: FrameType | None, message: Any) -> None:
    filename, line, scope = (*_place(frame), frame.f_globals) if frame else _BEYOND
    shown, name = scope.setdefault("__warningregistry__", {}), scope.get("__name__") or "<string>"
    warnings.warn_explicit(message.message, message.category, filename, line, name, shown, source=message.source)
