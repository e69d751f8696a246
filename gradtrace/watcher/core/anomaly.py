"""Gives anomaly mode the forward traceback that it has without us: torch asks for the stack at each operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import StackSummary, walk_stack

import torch.fx.traceback

from gradtrace.watcher.core.warning_sites import without_us


@contextmanager
def placed() -> Iterator[None]:
    """While open, the stack that anomaly mode keeps has no frames of ours."""
    found = torch.fx.traceback.format_stack

    def format_stack() -> list[str]:
        if torch.fx.traceback.should_preserve_node_meta:
            return found()
        frames = without_us([frame for frame, _ in walk_stack(sys._getframe(1))])
        return StackSummary.extract((frame, frame.f_lineno) for frame in reversed(frames)).format()

    torch.fx.traceback.format_stack = format_stack
    try:
        yield
    finally:
        if torch.fx.traceback.format_stack is format_stack:
            torch.fx.traceback.format_stack = found
