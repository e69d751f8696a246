"""Counts the steps of learning rate schedulers beside those of their optimizers."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from gradtrace.model.site import Stack
from gradtrace.model.truths import Schedule
from gradtrace.watcher.compat import held_schedulers
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session


@dataclass(slots=True)
class _Counts:
    """What is known of one scheduler."""

    kind: str
    optimizer: TensorId
    name: str
    made: Stack
    #: its steps by place; those before the first step of its optimizer
    places: Counter[Stack] = field(default_factory=Counter)
    early: Counter[Stack] = field(default_factory=Counter)
    #: its steps since the last one of its optimizer, how many such windows held several steps, and as many backward calls
    window: int = 0
    calls: int = 0
    windows: int = 0
    crowded: int = 0
    #: how often its optimizer stepped, and how often in a row with a rate of 0, up to now
    steps: int = 0
    idle: int = 0
    #: an epoch was given, or another scheduler steps it
    given_value: bool = False
    held: bool = False


class Schedules(Observer):
    """Schedulers are known weakly."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: WeakKeyDictionary[Any, _Counts] = WeakKeyDictionary()
        self._all: list[_Counts] = []
        #: by optimizer
        self._steps: Counter[TensorId] = Counter()
        self._depth = 0
        self._scaled, self._complete = False, True

    def functions(self) -> dict[Any, Handler]:
        return {torch._amp_foreach_non_finite_check_and_unscale_: self._unscales}

    def _unscales(self, call: TorchCall) -> None:
        self._scaled = True

    @contextmanager
    def watched(self) -> Iterator[None]:
        kinds = [
            kind for kind in vars(lr_scheduler).values() if isinstance(kind, type) and issubclass(kind, LRScheduler)
        ]
        with ExitStack() as opened:
            for kind in kinds:
                if "step" in vars(kind):
                    opened.enter_context(self._replaced(kind, "step", self._stepping))
            opened.enter_context(self._replaced(LRScheduler, "__init__", self._making))
            yield

    @contextmanager
    def _replaced(self, kind: Any, name: str, around: Callable[[Any], Any]) -> Iterator[None]:
        found = vars(kind)[name]
        replacing = around(found)
        setattr(kind, name, replacing)
        try:
            yield
        finally:
            if vars(kind).get(name) is replacing:
                setattr(kind, name, found)

    def _making(self, init: Any) -> Any:
        @compiled.around
        @functools.wraps(init)
        def make(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            self._depth += 1  # it makes a step of its own
            try:
                init(scheduler, *args, **kwargs)
            finally:
                self._depth -= 1
            self.session.guarded(self._made, scheduler, sys._getframe(1))

        return make

    def _stepping(self, step: Any) -> Any:
        @compiled.around
        @functools.wraps(step)
        def advance(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._depth and self.session.in_watched_thread():
                self.session.guarded(self._stepped, scheduler, bool(args or kwargs), sys._getframe(1))
            self._depth += 1
            try:
                return step(scheduler, *args, **kwargs)
            finally:
                self._depth -= 1

        return advance

    def _made(self, scheduler: Any, frame: FrameType) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if optimizer is None:
            return
        counts = _Counts(type(scheduler).__name__, *self._key(optimizer), self.session.frames.stack(frame))
        self._known[scheduler] = counts
        self._all.append(counts)

    def _key(self, optimizer: Any) -> tuple[TensorId, str]:
        return self.session.ids.of(optimizer), type(optimizer).__name__

    def _stepped(self, scheduler: Any, given_value: bool, frame: FrameType) -> None:
        counts = self._known.get(scheduler)
        if counts is None:
            if getattr(scheduler, "optimizer", None) is None:
                return
            # some do without the constructor of their base class
            key, name = self._key(scheduler.optimizer)
            counts = _Counts(type(scheduler).__name__, key, name, (), steps=self._steps[key])
            self._known[scheduler] = counts
            self._all.append(counts)
        for other in held_schedulers(scheduler):
            if other in self._known:
                self._known[other].held = True
        stack = self.session.frames.stack(frame)
        counts.given_value |= given_value
        counts.places[stack] += 1
        counts.window += 1
        if not counts.steps:
            counts.early[stack] += 1

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if call.accumulates:
            for counts in self._all:
                counts.calls += 1

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        key = self.session.ids.of(optimizer)
        self._steps[key] += 1
        idle = all(group.get("lr") == 0 for group in optimizer.param_groups)
        for counts in self._all:
            if counts.optimizer != key:
                continue
            counts.windows += counts.steps > 0
            counts.crowded += counts.steps > 0 and counts.window > 1 and counts.calls == counts.window
            counts.window = counts.calls = 0
            counts.steps += 1
            counts.idle = counts.idle + 1 if idle else 0

    def crashed(self, error: BaseException, stack: Stack) -> None:
        self._complete = isinstance(error, SystemExit) and not error.code

    def at_end(self) -> None:
        for counts in self._all:
            if counts.held or counts.given_value:
                continue
            place, stepped = counts.places.most_common(1)[0] if counts.places else ((), 0)
            self.session.emit(
                Schedule(
                    scheduler=counts.kind,
                    optimizer=counts.name,
                    made=counts.made,
                    place=place,
                    stepped=stepped,
                    early=counts.early[place],
                    steps=counts.steps,
                    windows=counts.windows,
                    crowded=counts.crowded,
                    idle=counts.idle,
                    scaled=self._scaled,
                    complete=self._complete,
                )
            )
