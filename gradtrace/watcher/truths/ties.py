"""Sees parameters that two modules shared and that part, and parameters that an optimizer holds twice."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.nn import Module
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import BrokenTie, HeldTwice
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.parameters.births import Births

#: ties remembered, and steps after which they are looked at
_MOST, _STEPS = 256, frozenset((2, 3, 8, 64, 512, 4096))
_NAMES = 3
#: what runs between an assignment and the hook
_ASSIGNING = ("_parameter_hook", "register_parameter", "__setattr__")


@dataclass(slots=True)
class _Tie:
    """One parameter under two names."""

    one: weakref.ref[Module]
    one_name: str
    other: weakref.ref[Module]
    other_name: str
    tied: Stack
    #: where one of the two was replaced, and whether by a copy that was made for it alone
    parted: Stack = ()
    on_purpose: bool = False
    reported: bool = False


class Ties(Observer):
    """Modules are known weakly."""

    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._ties: list[_Tie] = []
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    @contextmanager
    def watched(self) -> Iterator[None]:
        handles = (
            register_module_parameter_registration_hook(self._parameter_hook),
            register_module_module_registration_hook(self._module_hook),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _parameter_hook(self, module: Any, name: str, parameter: Any) -> None:
        if parameter is not None and self.session.in_watched_thread():
            self.session.guarded(self._registered, module, name, parameter, sys._getframe(1))

    def _module_hook(self, parent: Any, name: str, module: Any) -> None:
        if module is not None and self._ties and parent._modules.get(name) is not None:
            self.session.guarded(self._replaced, parent._modules[name], module, sys._getframe(1))

    def _registered(self, module: Module, name: str, parameter: torch.Tensor, frame: FrameType) -> None:
        for tie in self._ties:
            partner = _partner(tie, module, name)
            if partner is not None and partner is not parameter:
                tie.parted = self.session.frames.stack(frame)
                tie.on_purpose = not _is_loading(frame) and _is_equal(partner, parameter)
        birth = self._births.of(parameter)
        first = birth.owner() if birth is not None else None
        if birth is None or first is None or (first is module and birth.name == name) or len(self._ties) >= _MOST:
            return
        stack = self.session.frames.stack(frame)
        self._ties.append(_Tie(weakref.ref(first), birth.name, weakref.ref(module), name, stack))

    def _replaced(self, old: Module, new: Module, frame: FrameType) -> None:
        """A module takes the place of another: its parameters take the places of those that were tied."""
        parts = dict(new.named_modules())
        paths = {module: path for path, module in old.named_modules()}
        for tie in list(self._ties):
            one, other = tie.one(), tie.other()
            if one is None or other is None or (one in paths) == (other in paths):
                continue
            moved = parts.get(paths.get(one, paths.get(other, "")))
            if moved is None:
                continue
            stays, name, moved_name = (other, tie.other_name, tie.one_name)
            if other in paths:
                stays, name, moved_name = (one, tie.one_name, tie.other_name)
            stack = self.session.frames.stack(frame)
            self._ties.append(_Tie(weakref.ref(stays), name, weakref.ref(moved), moved_name, tie.tied, stack))

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if optimizer not in self._seen:
            self._seen.add(optimizer)
            self._look_for_twins(optimizer)
        if self._ties and self.session.steps in _STEPS:
            for tie in self._ties:
                self._look(tie)

    def _look(self, tie: _Tie) -> None:
        one, other = tie.one(), tie.other()
        if tie.reported or one is None or other is None:
            return
        mine, theirs = one._parameters.get(tie.one_name), other._parameters.get(tie.other_name)
        if mine is None or theirs is None or mine is theirs:
            return
        if all(part.grad is not None and part.requires_grad and self.session.owned(part) for part in (mine, theirs)):
            tie.reported = True
            names = self.session.book.names((mine, theirs))
            self.session.emit(BrokenTie(names, tie.tied, tie.parted, tie.on_purpose))

    def _look_for_twins(self, optimizer: Optimizer) -> None:
        seen: set[TensorId] = set()
        twice: dict[TensorId, torch.Tensor] = {}
        for one in parameters(optimizer):
            number = self.session.ids.of(one)
            if number in seen:
                twice[number] = one
            seen.add(number)
        if twice:
            names = self.session.book.names(list(twice.values())[:_NAMES])
            made = self._births.optimizer(self.session.ids.of(optimizer))
            self.session.emit(
                HeldTwice(type(optimizer).__name__, names, len(twice), made.stack if made is not None else ())
            )


def _partner(tie: _Tie, module: Module, name: str) -> torch.Tensor | None:
    """What the other side of a tie holds, if this is one of its sides."""
    one, other = tie.one(), tie.other()
    if one is module and tie.one_name == name and other is not None:
        return other._parameters.get(tie.other_name)
    if other is module and tie.other_name == name and one is not None:
        return one._parameters.get(tie.one_name)
    return None


def _is_loading(frame: FrameType | None) -> bool:
    """Whether torch's own modules assign the parameter, as load_state_dict(assign=True) does."""
    while frame is not None and frame.f_code.co_name in _ASSIGNING:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == torch.nn.modules.module.__file__


def _is_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and bool((local_part(one).detach() == local_part(other).detach()).all())
    )
