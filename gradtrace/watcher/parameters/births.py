"""Where parameters and optimizers were made: what a module registers and what an optimizer is passed."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import saved

_TORCH = os.path.dirname(torch.__file__) + os.sep
#: births remembered: more parameters than any model has at once
_MOST = 200_000


@dataclass(frozen=True, slots=True)
class Birth:
    """A parameter was registered: by which module under which name, and where."""

    owner: weakref.ref[torch.nn.Module]
    kind: str
    name: str
    stack: Stack
    #: the module was made by the user's own code, not by a library other than torch
    own: bool
    #: optimizers made before it
    optimizers: int
    #: it took the place of one that an optimizer held
    instead: bool

    @property
    def in_forward(self) -> bool:
        return any(site.in_module_call for site in self.stack)


@dataclass(frozen=True, slots=True)
class CreatedOptimizer:
    """An optimizer, where it was made, and how many were made before it."""

    kind: str
    stack: Stack
    order: int
    #: where it was given a group without a parameter, as an exhausted generator gives
    empty: Stack = ()
    #: that group was an iterator
    used_up: bool = False


class Births(Observer):
    """Parameters, with the modules that they were registered in."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._born: dict[TensorId, Birth] = {}
        self._optimizers: dict[TensorId, CreatedOptimizer] = {}
        self._count = 0
        #: parameters that a state was loaded into: weights that come from elsewhere may be meant to stay
        self._loaded: set[TensorId] = set()
        #: where tensors were filled with one value before the first backward call, by where their values lie
        self._filled: dict[int, Stack] = {}

    def functions(self) -> Mapping[Any, Handler]:
        filling = (torch.Tensor.zero_, torch.Tensor.fill_, torch.nn.init.constant_)
        return {torch.Tensor.copy_: self._copied, **dict.fromkeys(filling, self._fills)}

    def _fills(self, call: TorchCall) -> None:
        if self.session.backward_calls == 0 and len(self._filled) < _MOST:
            for tensor in call.inputs[:1]:
                self._filled[saved.memory(tensor)] = self.session.frames.stack(call.frame)

    def filled_at(self, parameter: torch.Tensor) -> Stack:
        """Where the parameter, or its memory under another name, was filled with one value; else where it was made."""
        birth = self.of(parameter)
        return self._filled.get(saved.memory(parameter)) or (birth.stack if birth is not None else ())

    def _copied(self, call: TorchCall) -> None:
        if isinstance(call.args[0], torch.nn.Parameter) and len(self._loaded) < _MOST:
            self._loaded.add(self.session.ids.of(call.args[0]))

    def is_loaded(self, key: TensorId) -> bool:
        """Whether values were copied into the parameter."""
        return key in self._loaded

    @contextmanager
    def watched(self) -> Iterator[None]:
        handle = register_module_parameter_registration_hook(self._hook)
        try:
            yield
        finally:
            handle.remove()

    def of(self, parameter: torch.Tensor) -> Birth | None:
        found = self._born.get(self.session.ids.known(parameter))
        return found if found is not None and self._holds(found, parameter) else None

    def is_replaced(self, parameter: torch.Tensor) -> bool:
        """Whether the module that registered a living parameter holds another, or none, in its place by now."""
        found = self._born.get(self.session.ids.known(parameter))
        return found is not None and found.owner() is not None and not self._holds(found, parameter)

    def evaluating(self, leaves: Iterable[torch.Tensor]) -> bool:
        """Whether all modules that hold some of these leaves are in evaluation mode, and there are any."""
        found = False
        for leaf in leaves:
            birth = self.of(leaf)
            owner = birth.owner() if birth is not None else None
            if owner is not None:
                if owner.training:
                    return False
                found = True
        return found

    def of_gone_module(self, parameter: torch.Tensor) -> Birth | None:
        """The birth of a parameter whose module is gone already."""
        found = self._born.get(self.session.ids.known(parameter))
        return found if found is not None and found.owner() is None else None

    @property
    def any_optimizer(self) -> bool:
        return bool(self._optimizers)

    def optimizers(self) -> list[tuple[TensorId, CreatedOptimizer]]:
        return list(self._optimizers.items())

    def optimizer(self, key: TensorId) -> CreatedOptimizer | None:
        return self._optimizers.get(key)

    def after_group(self, optimizer: Optimizer, used_up: bool, frame: FrameType) -> None:
        key = self.session.ids.of(optimizer)
        known = self._optimizers.get(key)
        if len(optimizer.param_groups) == 1 or known is None:
            self._count += 1
            if len(self._optimizers) >= _MOST:
                self._optimizers.clear()
            known = CreatedOptimizer(type(optimizer).__name__, self.session.frames.stack(frame), self._count)
        if not optimizer.param_groups[-1]["params"]:
            empty = known.empty or self.session.frames.stack(frame)
            known = replace(known, empty=empty, used_up=known.used_up or used_up)
        self._optimizers[key] = known

    def _hook(self, module: Any, name: str, parameter: Any) -> None:
        if parameter is not None and self.session.in_watched_thread():
            self.session.guarded(self._registered, module, name, parameter, sys._getframe(1))

    def _registered(self, module: torch.nn.Module, name: str, parameter: torch.Tensor, frame: FrameType) -> None:
        key = self.session.ids.of(parameter)
        known = self._born.get(key)
        if known is not None and known.owner() is not None and self._holds(known, parameter):
            return
        before = module._parameters.get(name)
        birth = self.of(before) if before is not None else None
        instead = before is not None and (self.session.owned(before) or (birth is not None and birth.instead))
        if len(self._born) >= _MOST:
            self._born.clear()
        stack = self.session.frames.stack(frame)
        kind = type(module).__name__
        self._born[key] = Birth(weakref.ref(module), kind, name, stack, self._own(frame), self._count, instead)

    def _own(self, frame: FrameType) -> bool:
        at: FrameType | None = frame
        while at is not None and at.f_code.co_filename.startswith(_TORCH):
            at = at.f_back
        return at is not None and self.session.frames.is_user(at.f_code.co_filename)

    @staticmethod
    def _holds(birth: Birth, parameter: torch.Tensor) -> bool:
        """Whether this is still the parameter that was registered: after its death the identity may be another's."""
        owner = birth.owner()
        if owner is None:
            # a module made for one call is gone before its parameters are
            return birth.in_forward
        return owner._parameters.get(birth.name) is parameter
