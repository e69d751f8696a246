"""The directory that paths are relative to: where the command began, wherever the script has gone since."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_chosen: ContextVar[str | None] = ContextVar("start", default=None)


def directory() -> str:
    """That of the command; the working directory where nothing else was said. Raises `OSError` where it is gone."""
    return _chosen.get() or os.getcwd()


@contextmanager
def relative_to(directory: str) -> Iterator[None]:
    """While open, paths are relative to this directory."""
    before = _chosen.set(directory)
    try:
        yield
    finally:
        _chosen.reset(before)
