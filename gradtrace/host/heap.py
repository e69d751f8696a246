"""Python's garbage collector, kept from looking through what is no garbage.

It visits all that there is again and again while more and more is made: a fifth of the time that importing torch takes,
and longer than the work itself where a large graph becomes thousands of values.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While open, no garbage is collected."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def filled() -> Iterator[None]:
    """While open, no garbage is collected; what has been made by its end no collection looks through from then on."""
    with uncollected():
        yield
        gc.freeze()


@contextmanager
def frozen() -> Iterator[None]:
    """While open, no collection looks through what was there before."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
