"""Every change that watching makes to torch and Python for the time of the run goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """While open, `owner.name` is what `make` makes of it.

    Where the script has put something of its own there, that stays: it may call ours, which must do nothing by then but
    call what was there before.
    """
    found = getattr(owner, name)
    ours = make(found)
    setattr(owner, name, ours)
    try:
        yield
    finally:
        if getattr(owner, name, None) is ours:
            setattr(owner, name, found)
