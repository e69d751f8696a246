"""Sees `zero_grad()` as one event: what it does to each of the parameters need not pass through the mode."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer

from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.mode import Mode
from gradtrace.watcher.core.observer import Observer, overriding
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters

Clear = Callable[..., None]


@contextmanager
def watched(session: Session, mode: Mode, observers: list[Observer]) -> Iterator[None]:
    """While open, tells `observers` whose gradients `zero_grad()` of an optimizer or a module has set to None."""
    told = overriding(observers, "after_zero_grad")

    def watching(zero_grad: Clear, parameters_of: Callable[[Any], Iterable[torch.Tensor]]) -> Clear:
        @compiled.around
        @functools.wraps(zero_grad)
        def clear(owner: Any, set_to_none: bool = True) -> None:
            if not set_to_none or torch.compiler.is_compiling() or compiled.running() or not mode.on_top:
                zero_grad(owner, set_to_none)
                return
            try:
                with mode.aside():
                    zero_grad(owner, set_to_none)
            except BaseException as error:
                session.tidy(error)
                raise
            session.guarded(session.tell, told, list(parameters_of(owner)), sys._getframe(1))

        return clear

    with ExitStack() as opened:
        opened.enter_context(_replaced(Optimizer, watching(Optimizer.zero_grad, parameters)))
        opened.enter_context(_replaced(Module, watching(Module.zero_grad, Module.parameters)))
        yield


@contextmanager
def _replaced(kind: Any, clear: Clear) -> Iterator[None]:
    found = kind.zero_grad
    kind.zero_grad = clear
    try:
        yield
    finally:
        if kind.zero_grad is clear:
            kind.zero_grad = found
