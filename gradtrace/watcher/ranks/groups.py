"""Sees a job's process group come and go: its store is the way to the other ranks, and each step is a sign of life."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.optim import Optimizer

from gradtrace.host.ranks import Colleagues
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import job_store
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.ranks.store import StoreBoard


@contextmanager
def functions_patched(around: Mapping[str, Callable[[Any], Any]]) -> Iterator[None]:
    """While open, these functions of torch.distributed are what `around` makes of them, in each of the two modules that
    have them."""
    with ExitStack() as opened:
        for name, wrap in around.items() if dist.is_available() else ():
            for module in (c10d, dist):
                if hasattr(module, name):
                    opened.enter_context(patched(module, name, wrap))
        yield


class ProcessGroups(Observer):
    """Does nothing in a run without a process group, and nothing with one of a single process."""

    serves_rules = False

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: where the last backward call and the last step were made
        self.last_call: Stack = ()
        self.last_step: Stack = ()
        self._steps = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        with functions_patched({"init_process_group": self._joining}):
            yield

    def _joining(self, init: Callable[..., Any]) -> Callable[..., Any]:
        # a module that is imported meanwhile keeps this function for good
        of_this_watch = weakref.ref(self)

        @compiled.around
        @functools.wraps(init)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            me = of_this_watch()
            if me is None or not me.session.watching:
                return init(*args, **kwargs)
            if me.session.colleagues is not None and not dist.is_initialized():
                # a store that is kept would be found again, with all that was left in it
                me.session.guarded(me.session.colleagues.leave)
            result = init(*args, **kwargs)
            if me.session.watching:
                me.session.guarded(me._joined)
            return result

        return init_process_group

    def _joined(self) -> None:
        store = job_store()
        size = dist.get_world_size()
        if store is None or size < 2:
            return
        session = self.session
        if session.colleagues is None:
            session.colleagues = Colleagues(dist.get_rank(), size, None)
        if not session.colleagues.collected_elsewhere:
            in_rank_0 = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
            session.colleagues.meet(StoreBoard(store), dist.get_rank(), size, in_rank_0)
        else:
            session.colleagues.beat("joining")

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self.session.colleagues is not None:
            self.last_call = call.stack
            self._beat("running backward", call.stack)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if self.session.colleagues is not None:
            self.last_step = stack
            self._beat("stepping", stack)

    def _beat(self, doing: str, stack: Stack) -> None:
        session = self.session
        assert session.colleagues is not None
        path, line = stack[0].place if stack else ("", 0)
        session.colleagues.beat(doing, session.backward_calls, session.steps, path, line)


def in_job() -> bool:
    """Whether there is a process group of several processes."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
