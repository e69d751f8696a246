"""torch.compile: how much of the script it took out of sight, and code of ours that it must leave alone.

While a compiled function runs, and also in what it calls where it could not be compiled whole, each Python function
that is entered is compiled as well; ours, which hear of every call, would be compiled over and over.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from gradtrace.watcher.compat import DYNAMO, compile_callback, spare

F = TypeVar("F", bound=Callable[..., Any])


def ours(function: F) -> F:
    """Marks a function that calls nothing of the user's."""
    spare(function.__code__)
    return function


def around(function: F) -> F:
    """Marks a function that calls what is the user's to be compiled."""
    spare(function.__code__, callees=False)
    return function


@around  # in a function marked as ours it would always be off
def running() -> bool:
    """Whether a compiled function runs, or something that it calls."""
    return compile_callback() is not None


@contextmanager
def regions(begin: Callable[[], Callable[[], None]]) -> Iterator[None]:
    """While open, `begin` is called before each call of a compiled function, and after it what `begin` returned."""
    compile_ = torch.compile
    patched: list[tuple[Any, Any]] = []

    def patch(kind: Any) -> None:
        init = kind.__init__

        @functools.wraps(init)
        def initialize(context: Any, *args: Any, **kwargs: Any) -> None:
            init(context, *args, **kwargs)
            context.enter_exit_hooks.append(begin)

        kind.__init__ = initialize
        patched.append((kind, init))

    @functools.wraps(compile_)
    def compiling(*args: Any, **kwargs: Any) -> Any:
        if not patched:
            patch(importlib.import_module(DYNAMO).OptimizeContext)
        return compile_(*args, **kwargs)

    if DYNAMO in sys.modules:
        patch(sys.modules[DYNAMO].OptimizeContext)
    torch.compile = compiling
    try:
        yield
    finally:
        if torch.compile is compiling:
            torch.compile = compile_
        for kind, init in patched:
            kind.__init__ = init


def remark(number: int) -> str:
    """What to say of a run in which so many were compiled."""
    what = "1 piece of code" if number == 1 else f"{number} pieces of code"
    return f"torch.compile compiled {what}: what goes on inside was not seen, and no rule has judged it"
