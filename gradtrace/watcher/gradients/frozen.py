"""Sees parameters that are frozen after they had a gradient, and that their optimizer still moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import FrozenMoved
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters

Tensor = torch.Tensor

#: steps that move it, freezings remembered, names reported
_MOVES = 2
_MANY = 20_000
_NAMES = 6


class _FrozenParameter:
    """A frozen parameter: its first values after the last step, and how often a step has changed them."""

    __slots__ = "moves stack values".split()

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.values: list[float] = []
        self.moves = 0


class Frozen(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._frozen: dict[TensorId, _FrozenParameter] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys((Tensor.requires_grad.__set__, Tensor.requires_grad_), self._switched)  # type: ignore[attr-defined]

    def _switched(self, call: TorchCall) -> None:
        tensor, on = call.args[0], (*call.args[1:], *call.kwargs.values(), True)[0]
        if on or not tensor.is_leaf or tensor.grad is None or len(self._frozen) >= _MANY:
            self._frozen.pop(self.session.ids.of(tensor), None)
        else:
            self._frozen[self.session.ids.of(tensor)] = _FrozenParameter(self.session.frames.stack(call.frame))

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if not self._frozen:
            return
        moved: dict[Stack, list[str]] = {}
        for one in parameters(optimizer):
            watched = self._frozen.get(self.session.ids.of(one))
            if watched is None or one.grad is None or one.requires_grad:
                continue
            values = local_part(one).detach().reshape(-1)[:4].tolist()
            watched.moves += bool(watched.values) and values != watched.values
            watched.values = values
            if watched.moves == _MOVES:
                leaf = self.session.book.known(one)
                moved.setdefault(watched.stack, []).append(leaf.name if leaf else "a parameter")
        for place, names in moved.items():
            name = type(optimizer).__name__
            self.session.emit(FrozenMoved(tuple(names[:_NAMES]), len(names), name, place, stack))
