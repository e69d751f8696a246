"""Sees dropout and batch norm in the wrong mode: training in evaluation mode, evaluations in training mode, and functional
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
from weakref import WeakKeyDictionary, WeakSet

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import Module
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import DropoutInEvaluation, EvaluatedInTraining, LeftInEvaluation, TrainedInEvaluation
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

#: by function: the position of its argument `training`, and what that is if it is not given
_DROPOUTS = (F.dropout, F.alpha_dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.feature_alpha_dropout)
_MODAL: dict[Any, tuple[int, bool]] = {**dict.fromkeys(_DROPOUTS, (2, True)), F.batch_norm: (5, False)}
_THROUGH = (F.__file__, torch.overrides.__file__)
_MODAL_MODULES = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout),
)
#: take a value out, as a metric does
_READING = (Tensor.item, Tensor.tolist, Tensor.__float__, Tensor.__int__, Tensor.__format__)
#: steps, and evaluating calls, before anything is said; places remembered
_STEPS, _CALLS, _MOST = 2, 2, 4_096
#: backward calls in evaluation mode from the start, before anything is said
_FIRST = 4


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
    #: so many backward calls came before the switch
    calls: int = 0
    #: the layer alone was switched, as a batch norm is that is to keep its statistics
    alone: bool = False
    evaluated: bool = False


class Modes(Observer):
    """Modules are known weakly, places by their stacks."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._places: dict[Stack, _ModeLine] = {}
        self._states: WeakKeyDictionary[Module, _ModeState] = WeakKeyDictionary()
        self._back: Stack = ()
        #: by line that switches evaluation mode on: from where it was called
        self._callers: dict[tuple[str, int], set[Stack]] = {}
        self._depth = 0
        #: of the backward calls since the last step: the mode that one ran in, the place and the call
        self._suspect: tuple[_ModeState, Stack, Stack] | None = None
        self._steps: Counter[Stack] = Counter()
        self._ignored: Counter[Stack] = Counter()
        #: where evaluation mode was switched on, by backward calls in which no layer ever trained in training mode
        self._from_start: dict[Stack, tuple[int, Stack, Stack]] = {}
        #: layers that trained in training mode; lines at which these ran without gradients in it, several times since the
        #: last backward call; and those of them whose results were read as numbers
        self._trained: WeakSet[Module] = WeakSet()
        self._idle: Counter[tuple[Stack, TensorId]] = Counter()
        self._read: set[Stack] = set()

    def functions(self) -> Mapping[Any, Handler]:
        return {**dict.fromkeys(_MODAL, self._ran), **dict.fromkeys(_READING, self._reads)}

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
        elif stack and len(self._callers) < _MOST:
            self._callers.setdefault(stack[0].place, set()).add(stack)
        for one in module.modules():
            if type(one).__hash__ is not None:  # a class with an __eq__ of its own has none
                alone = one is module and isinstance(one, _MODAL_MODULES)
                self._states[one] = _ModeState(on, stack, self.session.backward_calls, alone)

    def _ran(self, call: TorchCall) -> None:
        at, default = _MODAL[call.func]
        training = bool(call.kwargs.get("training", call.args[at] if len(call.args) > at else default))
        layer = _layer(call.frame)
        if not getattr(call.out, "requires_grad", False):
            self._evaluated(call, layer, training)
        elif len(self._places) < _MOST:
            place = self._places.setdefault(self.session.frames.stack(call.frame), _ModeLine())
            place.node = call.after - 1
            place.state = None if training else self._state(layer)
            if training and layer is not None:
                self._trained.add(layer)

    def _state(self, layer: Module | None) -> _ModeState | None:
        return self._states.get(layer) if layer is not None else None

    def _evaluated(self, call: TorchCall, layer: Module | None, training: bool) -> None:
        """Something ran without gradients."""
        if torch.is_grad_enabled():
            return
        state = self._state(layer)
        if training and layer is not None and layer in self._trained and not self._was_switched(state):
            self._idle[self.session.frames.stack(call.frame), self.session.ids.of(layer)] += 1
        if state is None or state.on:
            return
        state.evaluated = True
        if training and call.func in _DROPOUTS:
            self._ignored[self.session.frames.stack(call.frame)] += 1

    def _was_switched(self, state: _ModeState | None) -> bool:
        """Whether the mode was chosen for what runs now, after the last backward call."""
        return state is not None and state.calls == self.session.backward_calls

    def _reads(self, call: TorchCall) -> None:
        """A number is taken out where a layer has run several times without gradients."""
        if not self._idle or torch.is_grad_enabled():
            return
        here = {(site.path, site.function) for site in self.session.frames.stack(call.frame)[:1]}
        for (stack, _), runs in self._idle.items():
            if runs >= _CALLS and any((site.path, site.function) in here for site in stack):
                self._read.add(stack)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._idle.clear()
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
            elif not state.on and not state.alone:
                count, _, _ = self._from_start.get(state.stack, (0, (), ()))
                self._from_start[state.stack] = count + 1, stack, call.stack
            place.node, place.state = -1, None

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if self._suspect is None:
            return
        (state, place, backward), self._suspect = self._suspect, None
        self._steps[state.stack] += 1
        if self._steps[state.stack] == _STEPS:
            callers = len(self._callers.get(state.stack[0].place, ())) if state.stack else 0
            self.session.emit(LeftInEvaluation(state.stack, backward, stack, place, self._back, callers))

    def at_end(self) -> None:
        if not any(place.trained for place in self._places.values()):
            for switched, (count, layer, backward) in self._from_start.items():
                if count >= _FIRST:
                    self.session.emit(TrainedInEvaluation(switched, backward, layer))
        for stack in self._read:
            self.session.emit(EvaluatedInTraining(stack))
        for stack, calls in self._ignored.items():
            if calls >= _CALLS:
                self.session.emit(DropoutInEvaluation(stack, calls))

    so_far = at_end


def _layer(frame: FrameType) -> Module | None:
    """The module that called a function of torch.nn.functional: the first argument of a method."""
    frame = _calling(frame)
    module = variables(frame).get(next(iter(frame.f_code.co_varnames), ""))
    if not isinstance(module, Module) or type(module).__hash__ is None:
        return None
    return module


def _calling(frame: FrameType) -> FrameType:
    """The frame that called a function of torch.nn.functional."""
    while frame.f_code.co_filename in _THROUGH and frame.f_back is not None:
        frame = frame.f_back
    return frame
