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
from types import CodeType
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

_dynamo: Any = torch._C._dynamo.eval_frame
_can_spare = hasattr(_dynamo, "set_code_exec_strategy")  # not before PyTorch 2.7


def spare(code: CodeType, callees: bool = True) -> None:
    """Has torch.compile leave this code alone and, with `callees`, all that it calls."""
    if _can_spare:
        act = _dynamo._FrameAction
        _dynamo.set_code_exec_strategy(code, _dynamo._FrameExecStrategy(act.SKIP, act.SKIP if callees else act.DEFAULT))


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
    return _dynamo.get_eval_frame_callback() is not None


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
            patch(importlib.import_module("torch._dynamo.eval_frame").OptimizeContext)
        return compile_(*args, **kwargs)

    if "torch._dynamo.eval_frame" in sys.modules:
        patch(sys.modules["torch._dynamo.eval_frame"].OptimizeContext)
    torch.compile = compiling
    try:
        yield
    finally:
        if torch.compile is compiling:
            torch.compile = compile_
        for kind, init in patched:
            kind.__init__ = init


def pieces() -> int:
    """How many pieces of code were compiled so far in this process, as torch itself counts them."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return int(counters["frames"]["ok"]) if counters else 0


def remark(number: int) -> str:
    """What to say of a run in which so many were compiled."""
    what = "1 piece of code" if number == 1 else f"{number} pieces of code"
    return f"torch.compile compiled {what}: what goes on inside was not seen, and no rule has judged it"
