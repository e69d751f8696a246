"""Sees dropout and batch norm that train in evaluation mode, since an evaluation left the model there, and functional
dropout that goes on in evaluation."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch.nn import Module
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import DropoutInEvaluation, LeftInEvaluation
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

#: by function: the position of its argument `training`, and what that is if it is not given
_DROPOUTS = (F.dropout, F.alpha_dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.feature_alpha_dropout)
_MODAL: dict[Any, tuple[int, bool]] = {**dict.fromkeys(_DROPOUTS, (2, True)), F.batch_norm: (5, False)}
_THROUGH = (F.__file__, torch.overrides.__file__)
#: steps, and evaluating calls, before anything is said; places remembered
_STEPS, _CALLS, _MOST = 2, 2, 4_096


@dataclass(slots=True)
class _ModeLine:
    """A line that calls dropout or batch norm on the way to a loss."""

    #: a backward call ran through it in training mode
    trained: bool = False
    #: since the last backward call: the number of its last node, and the mode of its module if it is in evaluation
    node: int = -1
    state: _ModeState | None = None


@dataclass(slots=True)
class _ModeState:
    """The mode of a module since the last `train()` or `eval()` that reached it, and whether it ran without gradients."""

    on: bool
    stack: Stack
    evaluated: bool = False


class Modes(Observer):
    """Modules are known weakly, places by their stacks."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._places: dict[Stack, _ModeLine] = {}
        self._states: WeakKeyDictionary[Module, _ModeState] = WeakKeyDictionary()
        self._back: Stack = ()
        self._depth = 0
        #: of the backward calls since the last step: the mode that one ran in, the place and the call
        self._suspect: tuple[_ModeState, Stack, Stack] | None = None
        self._steps: Counter[Stack] = Counter()
        self._ignored: Counter[Stack] = Counter()

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(_MODAL, self._ran)

    @contextmanager
    def watched(self) -> Iterator[None]:
        train = Module.train
        switching = self._switching(train)
        Module.train = switching  # type: ignore[method-assign]
        try:
            yield
        finally:
            if Module.train is switching:
                Module.train = train  # type: ignore[method-assign]

    def _switching(self, train: Any) -> Any:
        @compiled.around
        @functools.wraps(train)
        def switch(module: Module, mode: bool = True) -> Module:
            self._depth += 1
            try:
                found: Module = train(module, mode)
            finally:
                self._depth -= 1
            if not self._depth and not torch.compiler.is_compiling() and self.session.in_watched_thread():
                self.session.guarded(self._switched, module, bool(mode), sys._getframe(1))
            return found

        return switch

    def _switched(self, module: Module, on: bool, frame: FrameType) -> None:
        stack = self.session.frames.stack(frame)
        if on:
            self._back = stack
        for one in module.modules():
            if type(one).__hash__ is not None:  # a class with an __eq__ of its own has none
                self._states[one] = _ModeState(on, stack)

    def _ran(self, call: TorchCall) -> None:
        at, default = _MODAL[call.func]
        training = bool(call.kwargs.get("training", call.args[at] if len(call.args) > at else default))
        if not getattr(call.out, "requires_grad", False):
            self._evaluated(call, training and call.func in _DROPOUTS)
        elif len(self._places) < _MOST:
            place = self._places.setdefault(self.session.frames.stack(call.frame), _ModeLine())
            place.node = call.after - 1
            place.state = None if training else self._state(call)

    def _state(self, call: TorchCall) -> _ModeState | None:
        frame = _calling(call.frame)
        module = variables(frame).get(next(iter(frame.f_code.co_varnames), ""))  # a method's first argument
        if not isinstance(module, Module) or type(module).__hash__ is None:
            return None
        return self._states.get(module)

    def _evaluated(self, call: TorchCall, dropping: bool) -> None:
        """Something ran without gradients; `dropping` is dropout that is active."""
        state = self._state(call)
        if state is None or state.on or torch.is_grad_enabled():
            return
        state.evaluated = True
        if dropping:
            self._ignored[self.session.frames.stack(call.frame)] += 1

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.accumulates:
            return
        left = any(place.trained and place.state and place.state.evaluated for place in self._places.values())
        numbers = call.numbers() if left else set()
        for stack, place in self._places.items():
            state = place.state
            if state is None:
                place.trained |= place.node >= 0
            elif place.trained and not state.on and state.evaluated and place.node in numbers:
                self._suspect = state, stack, call.stack
            place.node, place.state = -1, None

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if self._suspect is None:
            return
        (state, place, backward), self._suspect = self._suspect, None
        self._steps[state.stack] += 1
        if self._steps[state.stack] == _STEPS:
            self.session.emit(LeftInEvaluation(state.stack, backward, stack, place, self._back))

    def at_end(self) -> None:
        for stack, calls in self._ignored.items():
            if calls >= _CALLS:
                self.session.emit(DropoutInEvaluation(stack, calls))


def _calling(frame: FrameType) -> FrameType:
    """The frame that called a function of torch.nn.functional."""
    while frame.f_code.co_filename in _THROUGH and frame.f_back is not None:
        frame = frame.f_back
    return frame
