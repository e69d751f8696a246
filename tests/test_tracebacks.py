"""Tracebacks of torch's errors under a mode read as without one."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from gradtrace.host.tracebacks import chain, hide_our_frames, is_ours, without_our_frames


def _handler() -> ModuleType:
    path = Path(__file__).parent / "fixtures" / "script" / "handler.py"
    spec = importlib.util.spec_from_file_location("handler", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


handler = _handler()


class UsersMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class UsersTensor(torch.Tensor):
    pass


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.view(17)


def backward_twice() -> None:
    loss = torch.ones(2, requires_grad=True).exp().sum()
    loss.backward()
    loss.backward()


def grad_of_nothing() -> None:
    torch.autograd.grad(torch.ones(()), [torch.ones(())])


def backward_of_a_function() -> None:
    Fails.apply(torch.ones(2, requires_grad=True)).sum().backward()


def function_in_c() -> None:
    torch.ones(2, 3) @ torch.ones(2, 3)


def function_in_python() -> None:
    nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(2, 3, 4))


def function_through_helpers() -> None:
    nn.functional.fractional_max_pool2d(torch.ones(1, 4, 4), 2)


def reflected_operator() -> None:
    "text" - torch.ones(2)  # type: ignore[operator]


def module() -> None:
    nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3))(torch.ones(2, 2))


def subclass() -> None:
    torch.ones(2).as_subclass(UsersTensor).requires_grad_().backward()


def mode_of_the_users() -> None:
    with UsersMode():
        torch.ones(2, requires_grad=True).backward()


def cause_and_context() -> None:
    try:
        try:
            backward_twice()
        except RuntimeError as error:
            raise ValueError("second") from error
    finally:
        torch.ones(2, requires_grad=True).backward()


def group() -> None:
    errors = [error_of(backward_twice, nullcontext()), error_of(module, nullcontext())]
    raise ExceptionGroup("several", errors)  # noqa: F821 - Python 3.11


CASES = [
    backward_twice,
    grad_of_nothing,
    backward_of_a_function,
    function_in_c,
    function_in_python,
    function_through_helpers,
    reflected_operator,
    module,
    subclass,
    mode_of_the_users,
    cause_and_context,
    *([group] if sys.version_info >= (3, 11) else []),
]


def error_of(case: Callable[[], None], mode: AbstractContextManager[object]) -> Exception:
    try:
        with mode:
            case()
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("it must fail")


def text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("mode", [handler.Mode, handler.HidingMode])
def test_a_traceback_reads_as_without_us(case: Callable[[], None], mode: type[AbstractContextManager[object]]) -> None:
    bare = text(error_of(case, nullcontext()))
    error = error_of(case, mode())
    hide_our_frames(error, handler.is_ours)
    assert text(error) == bare


def test_the_handler_can_hide_itself_from_the_script() -> None:
    assert text(error_of(function_in_c, handler.HidingMode())) == text(error_of(function_in_c, nullcontext()))


def test_a_traceback_of_ours_alone_becomes_none() -> None:
    error = error_of(function_in_c, nullcontext())
    assert without_our_frames(error.__traceback__, lambda frame: True) is None
    assert without_our_frames(None) is None


def test_deep_recursion_is_no_trouble() -> None:
    def users(depth: int) -> None:
        ours(depth)

    def ours(depth: int) -> None:
        users(depth - 1) if depth else 1 / 0

    error = error_of(lambda: users(400), nullcontext())
    hide_our_frames(error, lambda frame: frame.f_code is ours.__code__)
    names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
    assert (names.count("users"), names.count("ours")) == (401, 0)


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ValueError(), TypeError()
    first.__cause__, second.__context__ = second, first
    assert list(chain(first)) == [first, second]


def test_only_this_package_is_ours() -> None:
    callers: list[FrameType] = []

    def ours(frame: FrameType) -> bool:
        callers.append(sys._getframe(1))
        return False

    hide_our_frames(error_of(function_in_c, nullcontext()), ours)
    assert is_ours(callers[0])
    assert not is_ours(sys._getframe())
