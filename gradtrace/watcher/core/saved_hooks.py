"""Notices where torch cannot say whether a saved tensor can be read without running code of the script's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.autograd.graph

from gradtrace.watcher import compat
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.graph.saved import Access


@contextmanager
def noticed(closed: Callable[[], None]) -> Iterator[None]:
    """While open, no saved tensor is read any more once the script uses `saved_tensors_hooks`, as a checkpoint does: then
    `closed` is called. Only with a torch that does not say of each saved tensor whether such a hook lies before it."""

    def noticing(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def initialize(*args: Any, **kwargs: Any) -> None:
            if Access.is_open:
                Access.is_open = False
                closed()
            init(*args, **kwargs)

        return initialize

    if compat.SHOWS_SAVED:
        yield
        return
    Access.is_open = True
    try:
        with patched(torch.autograd.graph.saved_tensors_hooks, "__init__", noticing):
            yield
    finally:
        Access.is_open = True
