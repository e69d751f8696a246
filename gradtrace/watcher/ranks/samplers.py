"""Sees distributed samplers that give the same order again, since nothing told them the epoch."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch.utils.data.distributed import DistributedSampler

from gradtrace.model.ranks import SamplerOrder
from gradtrace.model.site import Stack
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session

_MOST = 16


@dataclass(slots=True)
class _Iterated:
    """What is known of one sampler."""

    used: Stack
    epoch: int
    times: int = 1
    #: steps of all optimizers when its last iteration began, and whether some were made in each of them
    steps: int = 0
    trains: bool = True


class Samplers(Observer):
    """Samplers are known weakly; only those that shuffle count."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: weakref.WeakKeyDictionary[Any, _Iterated] = weakref.WeakKeyDictionary()
        self._all: list[_Iterated] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        with patched(DistributedSampler, "__iter__", self._iterating):
            yield

    def _iterating(self, iterate: Callable[..., Any]) -> Callable[..., Any]:
        @compiled.around
        @functools.wraps(iterate)
        def begin(sampler: Any) -> Any:
            if self.session.in_watched_thread():
                self.session.guarded(self._begun, sampler, sys._getframe(1))
            return iterate(sampler)

        return begin

    def _begun(self, sampler: Any, frame: FrameType) -> None:
        if not sampler.shuffle or sampler.num_replicas < 2:
            return
        steps = self.session.steps
        known = self._known.get(sampler)
        if known is None:
            if len(self._all) < _MOST:
                known = _Iterated(self.session.frames.stack(frame), sampler.epoch, steps=steps)
                self._known[sampler] = known
                self._all.append(known)
            return
        same = sampler.epoch == known.epoch
        known.trains = known.trains and steps > known.steps
        known.times = known.times + 1 if same else 1
        known.epoch, known.steps = sampler.epoch, steps

    def at_end(self) -> None:
        for one in self._all:
            one.trains = one.trains and self.session.steps > one.steps
            if one.times > 1:
                self.session.emit(SamplerOrder((), one.used, one.times, one.epoch, one.trains))
