"""Sees `zero_grad()` as one event: what it does to each of the parameters need not pass through the mode."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer

from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.mode import WatchMode
from gradtrace.watcher.core.observer import Observer, overriding
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters

Clear = Callable[..., None]


@contextmanager
def watched(session: Session, mode: WatchMode, observers: list[Observer]) -> Iterator[None]:
    """While open, reports to `observers` whose gradients `zero_grad()` of an optimizer or a module has set to None."""
    handlers = overriding(observers, "after_zero_grad")

    def watching(zero_grad: Clear, parameters_of: Callable[[Any], Iterable[torch.Tensor]]) -> Clear:
        @compiled.around
        @functools.wraps(zero_grad)
        def clear(owner: Any, set_to_none: bool = True) -> None:
            left = set_to_none and mode.leave()
            try:
                zero_grad(owner, set_to_none)
            except BaseException as error:
                session.tidy(error)
                raise
            finally:
                if left:
                    mode.come_back()
            if left:
                session.guarded(cleared, owner, parameters_of, sys._getframe(1))

        return clear

    def cleared(owner: Any, parameters_of: Callable[[Any], Iterable[torch.Tensor]], frame: FrameType) -> None:
        session.dispatch(handlers, list(parameters_of(owner)), frame)

    with (
        patched(Optimizer, "zero_grad", lambda found: watching(found, parameters)),
        patched(Module, "zero_grad", lambda found: watching(found, Module.parameters)),
    ):
        yield
