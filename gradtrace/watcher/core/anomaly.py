"""Gives anomaly mode the forward traceback that it has without us: torch reads the stack at each operation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import StackSummary, walk_stack

import torch.fx.traceback

from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.warning_sites import without_us


@contextmanager
def placed(failed: Callable[[Exception], None]) -> Iterator[None]:
    """While open, the stack that anomaly mode keeps has no frames of ours. `failed` gets internal errors."""

    def formatting(found: Callable[[], list[str]]) -> Callable[[], list[str]]:
        def format_stack() -> list[str]:
            if torch.fx.traceback.should_preserve_node_meta:
                return found()
            try:
                frames = without_us([frame for frame, _ in walk_stack(sys._getframe(1))])
                return StackSummary.extract((frame, frame.f_lineno) for frame in reversed(frames)).format()
            except Exception as error:  # noqa: BLE001 - the script must go on
                failed(error)
                return found()

        return format_stack

    with patched(torch.fx.traceback, "format_stack", formatting):
        yield
