"""Python's own debugger, held to the user's code: frames of ours and of torch are neither shown nor stepped into."""

from __future__ import annotations

import ctypes
import pdb
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import CO_OPTIMIZED
from types import FrameType, TracebackType
from typing import Any

from gradtrace.host.script import StopRun
from gradtrace.host.tracebacks import frames_of, is_ours
from gradtrace.watcher.code.names import hands_out_locals

#: where dispatch to modes and modules happens: nothing of it is the user's
_PASSED_THROUGH = ("torch",)


class Prompt(pdb.Pdb):
    """One debugger for the run. `is_user` says whether a frame is the user's; `opened` is entered around each prompt."""

    def __init__(
        self, is_user: Callable[[FrameType], bool], opened: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__(nosigint=True)
        self._is_user = is_user
        self._opened = opened
        #: the next line, call or return stops, or may: tracing must be on
        self._stepping = False
        self.prompt = "(Pdb) "

    # where it stops

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        """The prompt, from its first line to its last."""
        with self._opened():
            self.stdin, self.stdout = sys.stdin, sys.stdout
            super().interaction(frame, traceback)

    def stop_in(self, frame: FrameType) -> None:
        """Stops in a frame that is running, at its current line; returns when the user lets it go on."""
        self.reset()
        self.botframe = self._outermost(frame)
        self.set_continue()
        with _emptied(frame):
            self.interaction(frame, None)

    def resume(self, frame: FrameType) -> None:
        """Goes on as the user wants: to be called last, since from then on each line of the user's is looked at."""
        if self._stepping:
            self.follow(frame)

    def follow(self, frame: FrameType) -> None:
        """Looks at each line that runs in this frame, and in those around it and those that it calls."""
        self.botframe = self._outermost(frame)
        for one in _outwards(frame):
            if self._is_user(one):
                one.f_trace = self.trace_dispatch
        sys.settrace(self.trace_dispatch)

    def wait_for_lines(self) -> None:
        """Stops at breakpoints, in functions that are called from now on."""
        self.reset()
        self.botframe = sys._getframe()
        self.set_continue()
        sys.settrace(self.trace_dispatch)

    def stop_soon(self, frame: FrameType) -> None:
        """Stops at the next line of the user's."""
        self.reset()
        self.set_step()
        self.follow(frame)

    def post_mortem(self, traceback: TracebackType) -> None:
        """Stops where an exception was raised."""
        self.reset()
        frames = frames_of(traceback)
        self.interaction(None, traceback)
        for one in frames:
            _empty(one)

    def _outermost(self, frame: FrameType) -> FrameType:
        """The outermost frame of the user's."""
        found = frame
        for one in _outwards(frame):
            if self._is_user(one):
                found = one
        return found

    def stop_here(self, frame: FrameType) -> bool:
        # the cheap question first: while it waits for a breakpoint, this is asked at every call
        return super().stop_here(frame) and not self._is_out_of_sight(frame)

    def _is_out_of_sight(self, frame: FrameType) -> bool:
        """What runs in our name, or inside torch, is none of the user's business until it calls code of theirs."""
        if self._is_user(frame):
            return False
        for one in _outwards(frame):
            if self._is_user(one):
                return False
            if is_ours(one) or _is_torchs(one):
                return True
        return True

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        """The user's frames, and those of libraries between them; the current one is the innermost of the user's."""
        stack, _ = super().get_stack(f, t)
        shown = [(frame, line) for frame, line in stack if not (is_ours(frame) or _is_torchs(frame))]
        first = next((at for at, (frame, _) in enumerate(shown) if self._is_user(frame)), 0)
        shown = shown[first:] or stack
        users = [at for at, (frame, _) in enumerate(shown) if self._is_user(frame)]
        return shown, users[-1] if users else len(shown) - 1

    # how it goes on

    def set_continue(self) -> None:
        super().set_continue()
        self._stepping = bool(self.breaks)

    def set_step(self) -> None:
        super().set_step()
        self._stepping = True

    def set_next(self, frame: FrameType) -> None:
        super().set_next(frame)
        self._stepping = True

    def set_return(self, frame: FrameType) -> None:
        super().set_return(frame)
        self._stepping = True

    def set_until(self, frame: FrameType, lineno: int | None = None) -> None:
        super().set_until(frame, lineno)
        self._stepping = True

    def set_quit(self) -> None:
        """Ends the run as --steps does: not by an exception that the script may take for one of its own."""
        sys.settrace(None)
        raise StopRun

    def do_run(self, arg: str) -> None:
        """run
        A run cannot be started again from here: leave with q, and start gradtrace again.
        """
        self.error("the run cannot be started again from here: leave with q, and start gradtrace again")

    do_restart = do_run

    # what is typed

    @contextmanager
    def looked_through(self) -> Iterator[None]:
        """While open, variables of frames may be read: what was assigned at the prompt is written back before, and
        afterwards the prompt sees the variables again."""
        frame = self.curframe
        if frame is not None:
            _write_back(frame)
        try:
            yield
        finally:
            if frame is not None and sys.version_info < (3, 13):
                self.curframe_locals = frame.f_locals

    def forget(self) -> None:
        """Lets go of all that was looked at."""
        super().forget()
        if sys.version_info < (3, 13):
            self.curframe_locals = {}

    def is_python(self, name: str, rest: str) -> bool:
        """Whether a line that begins like a command of ours is Python: `path = 3`, `grads[0]`, `diff.shape`."""
        return rest[:1] in tuple("=[.(+-*/%&|^<>,:@") and not rest.startswith(("--",))

    def value(self, text: str) -> Any:
        """The value of an expression in the current frame. Raises what it raises."""
        assert self.curframe is not None
        with self.looked_through():
            names = self.curframe.f_locals
        return eval(text, self.curframe.f_globals, names)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_torchs(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _PASSED_THROUGH


@contextmanager
def _emptied(frame: FrameType) -> Iterator[None]:
    """In the end no dictionary of variables is left that keeps values alive longer than the script does."""
    try:
        yield
    finally:
        for one in _outwards(frame):
            if one is frame:
                _write_back(one)
            _empty(one)


def _write_back(frame: FrameType) -> None:
    """Before Python 3.13 what is assigned in the dictionary of a frame's variables reaches them in trace functions alone."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _empty(frame: FrameType) -> None:
    if sys.version_info >= (3, 13) or is_ours(frame) or not frame.f_code.co_flags & CO_OPTIMIZED:
        return
    if not hands_out_locals(frame.f_code):
        frame.f_locals.clear()
