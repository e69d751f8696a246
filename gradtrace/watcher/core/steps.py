"""Sees optimizer steps, closure evaluations, and updates written by hand."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradtrace.host.script import StopRun
from gradtrace.model.events import Cut, Step
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph.reads import have_values

Tensor = torch.Tensor

#: what `step(closure)` is given; an object that can be called may be anything, a model for one
_CLOSURES = FunctionType, MethodType, functools.partial
#: what a GradScaler fails with where there was no gradient, or no backward call of a scaled loss
NO_CHECKS = "No inf checks were recorded"
NO_SCALE = "_scale is None"
#: what torch wraps around every optimizer's step
_STEP = Optimizer.profile_hook_step(lambda optimizer: None).__code__


class Steps:
    """Judges a step when it ends: with a closure, gradients are made and used within it."""

    def __init__(self, session: Session, stop_after: int | None = None) -> None:
        self._session = session
        self.after_handlers: Sequence[Callable[..., None]] = ()
        self.unseen_handlers: Sequence[Callable[..., None]] = ()
        self.group_handlers: Sequence[Callable[..., None]] = ()
        self.refused_handlers: Sequence[Callable[..., None]] = ()
        self._stop_after = stop_after
        #: an optimizer's own code is running, not a closure of the user's
        self.inside = False
        #: called when that begins and ends
        self.on_inside: Callable[[bool], None] = lambda inside: None
        #: the optimizers whose steps are under way, the outermost first
        self._under_way: list[TensorId] = []
        self._evaluations = 0
        #: backward calls before the step
        self._calls_before = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        with patched(Optimizer, "add_param_group", self._recording):
            yield
        self._session.guarded(self.failed)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """While open, steps are seen."""
        handles = register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def versions(self) -> dict[TensorId, list[int]]:
        """By optimizer, the version counters of what it holds."""
        return {
            self._session.ids.of(one): [tensor._version for tensor in parameters(one)]
            for one in self._session.optimizers()
        }

    def unseen(self, before: dict[TensorId, list[int]]) -> None:
        """Takes note of the steps that were made since these were the `versions()`, with no hooks in place."""
        now = self.versions()
        for optimizer in self._session.optimizers():
            if before.get(self._session.ids.of(optimizer), []) != now[self._session.ids.of(optimizer)]:
                self._session.steps += 1
                self._session.stepped(self._session.ids.of(optimizer))
                self._session.book.step_unseen(parameters(optimizer), self._session.backward_calls)
                self._session.dispatch(self.unseen_handlers, optimizer)

    def _recording(self, add_group: Callable[..., None]) -> Callable[..., None]:
        @compiled.around
        @functools.wraps(add_group)
        def add_param_group(optimizer: Optimizer, param_group: Any) -> None:
            session = self._session
            given = param_group.get("params") if isinstance(param_group, dict) else None
            try:
                add_group(optimizer, param_group)
            except ValueError as error:
                session.tidy(error)
                session.guarded(
                    session.dispatch, self.refused_handlers, optimizer, param_group, error, sys._getframe(1)
                )
                raise
            if session.watching:
                session.guarded(self._own, optimizer, given, sys._getframe(1))

        return add_param_group

    def _own(self, optimizer: Optimizer, given: Any, frame: FrameType) -> None:
        session, parameters = self._session, optimizer.param_groups[-1]["params"]
        session.own(parameters, optimizer)
        for one in parameters:
            if type(one) is Tensor and not one.requires_grad:
                cut = Cut(type(optimizer).__name__, "unasked", session.frames.stack(frame))
                session.unasked.append((weakref.ref(one), cut))
        used_up = isinstance(given, Iterator) and not parameters
        session.dispatch(self.group_handlers, optimizer, used_up, frame)

    @compiled.ours
    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not self._session.in_first_thread():
            return None
        try:
            key = self._session.ids.of(optimizer)
            nested = key in self._under_way
            self._under_way.append(key)
            if nested or self._session.over:
                return None
            return self._begin(optimizer, args, kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self._session.fail(error, self)
            return None

    @compiled.ours
    def _begin(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        self._set_inside(True)
        self._evaluations = 0
        self._calls_before = self._session.backward_calls
        # the hook sees the optimizer as the first argument; a step of the user's own may take anything after it
        if isinstance(kwargs.get("closure"), _CLOSURES):
            return args, kwargs | {"closure": self._counting(optimizer, kwargs["closure"])}
        if isinstance(next(iter(args[1:]), None), _CLOSURES):
            return (args[0], self._counting(optimizer, args[1]), *args[2:]), kwargs
        return None

    def _counting(self, optimizer: Optimizer, closure: Callable[..., Any]) -> Callable[..., Any]:
        """The closure, with each evaluation after the first one counted as a use of the gradients there were."""

        @compiled.around
        @functools.wraps(closure)
        def evaluate(*args: Any, **kwargs: Any) -> Any:
            if self._evaluations:
                self._session.guarded(self._use, optimizer, sys._getframe(1))
            self._evaluations += 1
            self._set_inside(False)
            try:
                return closure(*args, **kwargs)
            finally:
                self._set_inside(True)

        return evaluate

    def _use(self, optimizer: Optimizer, frame: FrameType) -> None:
        self._session.book.use(parameters(optimizer), self._session.frames.stack(frame))

    @compiled.ours
    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        session = self._session
        if not self._under_way or not session.in_first_thread():
            return
        key = self._under_way.pop()
        self._set_inside(self.running)
        # counted whatever becomes of the watching: the run is to end where it was to end
        session.steps += not self.running
        if key not in self._under_way:  # else `super().step()`: the whole step is judged when it ends
            session.guarded(self._judge, optimizer, sys._getframe(1))
        if not self.running and self._stop_after is not None and session.steps >= self._stop_after:
            raise StopRun

    def _judge(self, optimizer: Optimizer, frame: FrameType) -> None:
        session = self._session
        stack = session.frames.stack(frame)
        session.stepped(self._session.ids.of(optimizer))
        session.meet(optimizer)
        held, key = list(parameters(optimizer)), session.ids.of(optimizer)
        uses = session.book.step(held, key, stack, session.backward_calls).uses
        session.dispatch(self.after_handlers, optimizer, stack)
        session.emit(
            Step(
                session.steps,
                type(optimizer).__name__,
                self._session.ids.of(optimizer),
                stack,
                uses,
                unknown=not uses and any(have_values([one.grad for one in held if one.grad is not None])),
                evaluations=self._evaluations,
                calls_inside=session.backward_calls - self._calls_before,
                held=session.held(),
            )
        )

    def failed(self, frame: FrameType | None = None) -> None:
        """A backward call outside a closure: a step that raised an error did not report its end; one that takes a second
        derivative itself is still running in `frame`."""
        if self.inside and not any(at.f_code is _STEP for at in _outwards(frame)):
            self._under_way.clear()
            self._set_inside(False)

    @property
    def running(self) -> bool:
        """A step is under way: what runs is an optimizer's own code, or a closure of the user's."""
        return bool(self._under_way)

    @compiled.ours
    def _set_inside(self, inside: bool) -> None:
        if inside != self.inside:
            self.inside = inside
            self.on_inside(inside)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def parameters(optimizer: Optimizer) -> Iterable[torch.Tensor]:
    return (tensor for group in optimizer.param_groups for tensor in group["params"])
