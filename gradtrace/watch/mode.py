"""Sees every torch function that the user's code calls, and notes which line made which nodes.

This is the hot path: what is not needed at every call is not done here.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradtrace.watch.observer import Handler, Observer, TorchCall, overriding
from gradtrace.watch.session import Session, out_of_reach
from gradtrace.watch.steps import Steps

#: what torch.overrides does not export: the stack of modes
_modes: Any = torch.overrides


class Mode(TorchFunctionMode):
    """Tells observers of the calls they asked for. Steps aside under `torch.compile` and inside optimizer steps."""

    def __init__(self, session: Session, steps: Steps, observers: Sequence[Observer]) -> None:
        super().__init__()
        self._session = session
        self._steps = steps
        self._told_failures = overriding(observers, "failed")
        #: height of the stack of modes that we left
        self._left_at: int | None = None
        steps.on_inside = self.stand_aside
        self._of_function: dict[Any, list[Handler]] = defaultdict(list)
        for one in observers:
            for func, handler in one.functions().items():
                self._of_function[func].append(handler)
        self._of_nodes = [told for one in observers if (told := one.made_nodes())]
        self._of_plain = [told for one in observers if (told := one.made_plain())]

    def __exit__(self, *error: Any) -> None:
        """Leaves the stack for good, wherever in it we are: a mode that the script entered and never left stays."""
        self._left_at = None
        above = []
        while _modes._len_torch_function_stack() and (mode := _modes._pop_mode()) is not self:
            above.append(mode)
        for mode in reversed(above):
            _modes._push_mode(mode)

    @contextmanager
    def overlooked(self) -> Iterator[None]:
        """While open, torch does not close its fast paths (of attention in evaluation) because of our mode alone."""
        found = torch.overrides.has_torch_function

        def has_torch_function(args: Iterable[Any]) -> bool:
            if torch.compiler.is_compiling() or _modes._get_current_function_mode() is not self:
                return found(args)
            self.stand_aside(True)
            try:
                return found(args)
            finally:
                self.stand_aside(False)

        torch.overrides.has_torch_function = has_torch_function
        try:
            yield
        finally:
            if torch.overrides.has_torch_function is has_torch_function:
                torch.overrides.has_torch_function = found

    def stand_aside(self, aside: bool) -> None:
        """Leaves the stack of modes, or comes back to it, where nobody else's mode has come to lie on top of ours."""
        if aside and _modes._get_current_function_mode() is self:
            _modes._pop_mode()
            self._left_at = _modes._len_torch_function_stack()
        elif not aside and self._left_at == _modes._len_torch_function_stack():
            _modes._push_mode(self)
            self._left_at = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._steps.inside or out_of_reach():
            return func(*args, **kwargs)
        session = self._session
        before = session.sequence()
        trail = session.trail
        if before != trail.end:
            # made where the mode does not reach, by a custom Function for one: the call that comes next is nearest
            session.guarded(self._note, trail.end, before, sys._getframe(1))
        try:
            out = func(*args, **kwargs)
        except BaseException as error:
            self._tell_failure(TorchCall(sys._getframe(1), func, args, kwargs, None, before, before), error)
            session.tidy(error)
            raise
        after = session.sequence()
        handlers = self._of_function.get(func, ())
        if after != before:
            session.guarded(self._note, before, after, sys._getframe(1))
            handlers = (*handlers, *self._of_nodes) if self._of_nodes else handlers
        elif type(out) is torch.Tensor and not out.requires_grad:
            handlers = (*handlers, *self._of_plain)
        if handlers:
            call = TorchCall(sys._getframe(1), func, args, kwargs, out, before, after)
            for handler in handlers:
                session.guarded(handler, call)
        return out

    def _note(self, start: int, end: int, frame: FrameType) -> None:
        self._session.trail.add(start, end, self._session.frames.stack(frame))

    def _tell_failure(self, call: TorchCall, error: BaseException) -> None:
        for told in self._told_failures:
            self._session.guarded(told, call, error)
