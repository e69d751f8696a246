"""Which line runs next, told alike by whatever the interpreter offers for it."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

import pytest

from gradtrace.watcher.story import tracing

WAYS = [tracing._settraced, *([tracing._monitored] if sys.version_info >= (3, 12) else [])]
CODE = """\
def library():
    raise ValueError("no")

def numbers():
    for number in range(2):
        yield number

def total():
    found = 0
    for number in numbers():
        found += number
    try:
        library()
    except ValueError:
        found = -1
    return found

total()
"""
TOLD = [
    *["> <module>", 1, 4, 8, 18],
    *["> total", 9, 10, "> numbers", 5, 6, "< numbers", 11, 10, "> numbers", 5, 6, "< numbers", 11],
    *[10, "> numbers", 5, "< numbers", 12, 13, "ValueError in total", 14, 15, 16, "< total"],
    "< <module>",
]


class Log:
    """Takes down what a listener is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def wants(self, code: CodeType) -> bool:
        return code.co_filename == "traced" and code.co_name != "library"

    def entered(self, frame: FrameType) -> None:
        self.told.append(f"> {frame.f_code.co_name}")

    def reached(self, frame: FrameType, line: int) -> None:
        self.told.append(line)

    def raised(self, frame: FrameType, error: BaseException) -> None:
        self.told.append(f"{type(error).__name__} in {frame.f_code.co_name}")

    def left(self, frame: FrameType) -> None:
        self.told.append(f"< {frame.f_code.co_name}")


@pytest.mark.parametrize("traces", WAYS)
def test_lines_are_told_of_wanted_code_alone(traces: Any) -> None:
    log, before = Log(), sys.gettrace()
    with traces(log):
        exec(compile(CODE, "traced", "exec"), {})
    assert log.told == TOLD
    assert sys.gettrace() is before


@pytest.mark.parametrize("traces", WAYS)
def test_a_forked_child_can_end_it(traces: Any) -> None:
    log = Log()
    with traces(log) as stop:
        stop()
        exec(compile(CODE, "traced", "exec"), {})
    assert log.told == []


def test_the_way_of_this_interpreter_is_one_of_them() -> None:
    log = Log()
    with tracing.traced(log):
        exec(compile(CODE, "traced", "exec"), {})
    assert log.told == TOLD
