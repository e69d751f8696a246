"""Tracebacks that read as if gradtrace were not there.

Watching adds frames of two kinds to the stack. Our own are known by the directory of their code. The others are torch's:
a Python function F of torch that finds a mode active goes through `torch.overrides` to the mode's handler, which calls
F once more. Without a mode there is only the second call of F.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import TypeAlias

IsOurs: TypeAlias = Callable[[FrameType], bool]
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
#: has no name in Python 3.10
_GROUP: type | tuple[()] = getattr(builtins, "BaseExceptionGroup", ())


def is_ours(frame: FrameType) -> bool:
    """Whether the frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def hide_our_frames(error: BaseException, ours: IsOurs = is_ours) -> None:
    """Takes our frames out of the traceback of `error` and of every exception that is printed with it."""
    links = list(chain(error))
    own: set[int] = set()
    for link in links:
        found = without_our_frames(link.__traceback__, ours)
        if found is None and link.__traceback__ is not None:
            own.add(id(link))
        # not `link.__traceback__ = ...`: a frozen dataclass that is an exception forbids it
        BaseException.with_traceback(link, found)
    for link in links:
        context = link.__context__
        # what was raised and caught in our code alone, such as where the script has used up its stack
        if context is not None and id(context) in own:
            BaseException.__setattr__(link, "__context__", context.__context__)


def chain(error: BaseException) -> Iterator[BaseException]:
    """`error` with its causes, its contexts and the members of groups, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__cause__, link.__context__]
            waiting += getattr(link, "exceptions", ()) if isinstance(link, _GROUP) else ()


def without_our_frames(traceback: TracebackType | None, ours: IsOurs = is_ours) -> TracebackType | None:
    """The traceback without our frames and without those that torch only has because of us; its links are changed.

    A handler may use it on what passes through: after `error.__traceback__ = without_our_frames(error.__traceback__)` a
    bare `raise` does not enter the handler again. What torch adds outside the handler is then taken out at the end.
    """
    kept: list[TracebackType] = []
    handled = False
    for entry in entries(traceback):
        if ours(entry.tb_frame):
            handled = _drop_dispatch(kept) or handled
            continue
        if handled or _handler_hid(kept, entry):
            _drop_first_call(kept, entry)
        kept.append(entry)
        handled = False
    return _linked(kept)


def entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Those of a traceback, the outermost frame's first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def frames_of(traceback: TracebackType | None) -> list[FrameType]:
    """The frames of a traceback, the outermost first."""
    return [entry.tb_frame for entry in entries(traceback)]


def _drop_dispatch(kept: list[TracebackType]) -> bool:
    """Takes torch's path to the handler off the end; False where the handler was called from C."""
    before = len(kept)
    while kept and _is_dispatch(kept[-1]):
        kept.pop()
    return len(kept) < before


def _handler_hid(kept: list[TracebackType], entry: TracebackType) -> bool:
    """Whether a handler took itself out between the two: torch's dispatch calls nothing else."""
    return bool(kept) and _is_dispatch(kept[-1]) and entry.tb_frame.f_code.co_name != "__torch_function__"


def _drop_first_call(kept: list[TracebackType], entry: TracebackType) -> None:
    """Takes off the first call of the function whose second call is `entry`, with the helpers it went through."""
    for index in reversed(range(len(kept))):
        if kept[index].tb_frame.f_code is entry.tb_frame.f_code:
            del kept[index:]
            return
        if not _module(kept[index]).startswith("torch."):
            return


def _is_dispatch(entry: TracebackType) -> bool:
    return _module(entry) == "torch.overrides"


def _module(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__", ""))


def _linked(entries: list[TracebackType]) -> TracebackType | None:
    following = None
    for entry in reversed(entries):
        if entry.tb_next is not following:
            entry.tb_next = following
        following = entry
    return following
