"""Ranks that the script starts itself, by `torch.multiprocessing.spawn`: they are watched as this process is."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch.multiprocessing

from gradtrace.host.ranks import Colleagues
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session

#: from the function that each process is to run, and the other ranks: what it runs in its place
InChild: TypeAlias = Callable[[Any, Colleagues], Any]
_SPAWN = "torch.multiprocessing.spawn"


class SpawnedRanks(Observer):
    """Only processes that start afresh: those that are forked inherit a watch that is over."""

    serves_rules = False

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.in_child: InChild | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        # the function of that name hides the module
        with (
            patched(sys.modules[_SPAWN], "start_processes", self._starting),
            patched(torch.multiprocessing, "start_processes", self._starting),
        ):
            yield

    def _starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        @compiled.around
        @functools.wraps(start)
        def start_processes(fn: Any, args: Any = (), nprocs: int = 1, *rest: Any, **options: Any) -> Any:
            method = options.get("start_method", rest[2] if len(rest) > 2 else "spawn")
            if method != "fork" and nprocs > 1 and self.session.watching:
                fn = self.session.guarded(self._watched_too, fn, nprocs) or fn
            return start(fn, args, nprocs, *rest, **options)

        return start_processes

    def _watched_too(self, fn: Any, size: int) -> Any:
        session = self.session
        if self.in_child is None or (session.colleagues is not None and not session.colleagues.collects):
            return None
        if session.colleagues is None:
            session.colleagues = Colleagues.started_here(size)
        elif session.colleagues.size != size:
            return None
        return self.in_child(fn, session.colleagues)
