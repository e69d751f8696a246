"""Sees every torch function that the user's code calls, and notes which line made which nodes.

This is the hot path: what is not needed at every call is not done here.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradtrace.watcher.compat import TensorBase, mode_at, mode_height, pop_mode, push_mode
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, overriding
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session, out_of_reach
from gradtrace.watcher.core.steps import Steps

_OWNERS = torch, torch.Tensor, torch.functional, torch.nn.functional, torch.nn.init, torch.autograd
#: torch's functions in Python as they are before the script runs; and by its code each that shares it with no other
_FUNCTIONS = {one for owner in _OWNERS for one in vars(owner).values() if type(one) is FunctionType}
_SHARERS = Counter(one.__code__ for one in _FUNCTIONS)
_BY_CODE = {one.__code__: one for one in _FUNCTIONS if _SHARERS[one.__code__] == 1}


class WatchMode(TorchFunctionMode):
    """Reports calls to the observers that want them. Steps aside under `torch.compile` and inside optimizer steps."""

    def __init__(self, session: Session, steps: Steps, observers: Sequence[Observer]) -> None:
        super().__init__()
        self._session = session
        self._steps = steps
        self._failure_handlers = overriding(observers, "failed")
        #: height of the stack of modes that we left
        self._left_at: int | None = None
        steps.on_inside = self.stand_aside
        self._handlers = _HandlerTable(session, observers)

    def __exit__(self, *error: Any) -> None:
        """Leaves the stack for good, wherever in it we are: a mode that the script entered and never left stays."""
        self._left_at = None
        above = []
        while mode_height() and (mode := pop_mode()) is not self:
            above.append(mode)
        for mode in reversed(above):
            push_mode(mode)

    @contextmanager
    def overlooked(self) -> Iterator[None]:
        """While open, torch does not close its fast paths (of attention in evaluation) because of our mode alone."""

        def overlooking(found: Callable[[Iterable[Any]], bool]) -> Callable[[Iterable[Any]], bool]:
            @compiled.around
            def has_torch_function(args: Iterable[Any]) -> bool:
                left = self.leave()
                try:
                    return found(args)
                finally:
                    if left:
                        self.come_back()

            return has_torch_function

        with patched(torch.overrides, "has_torch_function", overlooking):
            yield

    @compiled.around
    def leave(self) -> bool:
        """Leaves the stack of modes for one call of the script's that need not be seen; whether it did: not where
        another mode comes before ours."""
        if self._session.over:
            return False
        try:
            if torch.compiler.is_compiling() or compiled.running():
                return False
            height = mode_height()
            on_top = height > 0 and mode_at(height - 1) is self
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self._session.fail(error, self)
            return False
        if on_top:
            self.stand_aside(True)
        return on_top

    def come_back(self) -> None:
        """After `leave`."""
        self.stand_aside(False)

    @compiled.ours
    def stand_aside(self, aside: bool) -> None:
        """Leaves the stack of modes, or returns to it, where no other mode is on top of ours."""
        if self._session.over:
            return
        try:
            self._stand_aside(aside)
        except Exception as error:  # noqa: BLE001 - as above
            self._session.fail(error, self)

    @compiled.ours
    def _stand_aside(self, aside: bool) -> None:
        height = mode_height()
        if aside:
            if height and mode_at(height - 1) is self:
                pop_mode()
                self._left_at = height - 1
        elif self._left_at == height:
            push_mode(self)
            self._left_at = None

    @compiled.around
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        session = self._session
        # guarded by hand: a call more for each of the script's would be too dear
        try:
            if type(func) is FunctionType and func not in _FUNCTIONS:
                func = _original(func, sys._getframe(1).f_back)
            unseen = session.over or self._steps.inside or out_of_reach() or compiled.running()
            before = -1 if unseen else session.sequence()
            if before >= 0 and before != session.trail.end:
                # made where the mode does not reach, by a custom Function for one: the call that comes next is nearest
                session.trail.add(session.trail.end, before, session.frames.stack(sys._getframe(1)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            session.fail(error, self)
            before = -1
        if before < 0:
            return func(*args, **kwargs)
        try:
            out = func(*args, **kwargs)
        except BaseException as error:
            session.guarded(self._failed, error, sys._getframe(1), func, args, kwargs, before)
            session.tidy(error)
            raise
        try:
            after = session.sequence()
            if after != before:
                session.trail.add(before, after, session.frames.stack(sys._getframe(1)))
                handlers = self._handlers.of_nodes(func)
                if handlers or after >= session.wake_at:
                    call = TorchCall(sys._getframe(1), func, args, kwargs, out, before, after)
                    session.guarded(self._made, handlers, call)
            elif handlers := self._handlers.of(func, type(out) is torch.Tensor and not out.requires_grad):
                call = TorchCall(sys._getframe(1), func, args, kwargs, out, before, after)
                session.guarded(session.dispatch, handlers, call)
        except Exception as error:  # noqa: BLE001 - as above
            session.fail(error, self)
        return out

    def _failed(self, error: BaseException, frame: FrameType, func: Any, args: Any, kwargs: Any, before: int) -> None:
        call = TorchCall(frame, func, args, kwargs, None, before, before)
        self._session.dispatch(self._failure_handlers, call, error)

    def _made(self, handlers: Sequence[Handler], call: TorchCall) -> None:
        session = self._session
        session.dispatch(handlers, call)
        if call.after >= session.wake_at:
            session.sleep()
            session.dispatch(self._handlers.woken, call)


def _original(func: FunctionType, caller: FrameType | None) -> Any:
    """Torch hands over what has the name of its function by now: a wrapper that the script put there would run twice."""
    if caller is not None and caller.f_code in _BY_CODE:
        return _BY_CODE[caller.f_code]
    name = next((name for name, one in vars(torch.Tensor).items() if one is func), "")
    return getattr(TensorBase, name, func)


class _HandlerTable:
    """Who handles which calls."""

    def __init__(self, session: Session, observers: Sequence[Observer]) -> None:
        by_function: defaultdict[Any, list[Handler]] = defaultdict(list)
        ask = session.guarded
        for one in observers:
            for func, handler in (ask(one.functions) or {}).items():
                by_function[func].append(handler)
        self._nodes = [found for one in observers if (found := ask(one.made_nodes))]
        self._plain = [found for one in observers if (found := ask(one.made_plain))]
        self.woken = [found for one in observers if (found := ask(one.woken))]
        self._of_function = dict(by_function)
        self._of_nodes = {func: [*handlers, *self._nodes] for func, handlers in by_function.items()}
        self._of_plain = {func: [*handlers, *self._plain] for func, handlers in by_function.items()}

    def of(self, func: Any, plain: bool) -> Sequence[Handler]:
        """Of a call that made no nodes; `plain`: it gave a tensor that has no graph."""
        return self._of_plain.get(func, self._plain) if plain else self._of_function.get(func, ())

    def of_nodes(self, func: Any) -> Sequence[Handler]:
        """Of a call that made nodes."""
        return self._of_nodes.get(func, self._nodes)
