"""torch.compile: how much of the script it hides, and code of ours that it must leave alone.

While a compiled function runs, and also in what it calls where it could not be compiled whole, each Python function
that is entered is compiled as well; ours, which see every call, would be compiled over and over.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch

from gradtrace.watcher.compat import DYNAMO, compile_callback, spare
from gradtrace.watcher.core.patches import patched

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
    with ExitStack() as opened:
        context_kinds: list[Any] = []
        # compiled functions live on, and keep `enter`: not what it called
        begins = [begin]

        def enter() -> Callable[[], None]:
            return begins[0]() if begins else _nothing

        def watch_contexts(kind: Any) -> None:
            context_kinds.append(kind)
            opened.enter_context(patched(kind, "__init__", telling))

        def telling(init: Callable[..., None]) -> Callable[..., None]:
            @functools.wraps(init)
            def initialize(context: Any, *args: Any, **kwargs: Any) -> None:
                init(context, *args, **kwargs)
                hooks = getattr(context, "enter_exit_hooks", None)
                if hooks is not None:
                    hooks.append(enter)

            return initialize

        def watching(compile_: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(compile_)
            def compiling(*args: Any, **kwargs: Any) -> Any:
                if is_open and not context_kinds:
                    watch_contexts(importlib.import_module(DYNAMO).OptimizeContext)
                return compile_(*args, **kwargs)

            return compiling

        if DYNAMO in sys.modules:
            watch_contexts(sys.modules[DYNAMO].OptimizeContext)
        is_open = True
        opened.enter_context(patched(torch, "compile", watching))
        try:
            yield
        finally:
            is_open = False
            begins.clear()


def _nothing() -> None:
    """There is nothing to undo."""


def remark(number: int) -> str:
    """What to say of a run in which so many were compiled."""
    what = "1 piece of code" if number == 1 else f"{number} pieces of code"
    return f"torch.compile compiled {what}: what goes on inside was not seen, and no rule has judged it"
