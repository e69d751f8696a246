"""The live line: a row of its own on a terminal, and nothing anywhere else."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from gradtrace.host import progress
from gradtrace.host.descriptors import Descriptor
from gradtrace.host.progress import Progress

if TYPE_CHECKING:
    from tests.conftest import Runner

TRAIN = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    weight.square().sum().backward()
    optimizer.step()
    print("step", step)
"""
RESERVE = "\x1bD\x1b[A\x1b7\x1b[1;{last}r\x1b8"
RELEASE = "\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8"
DRAWING = re.compile(r"\x1b7\x1b\[(\d+);1H\x1b\[2K\x1b\[2m(.*?)\x1b\[0m\x1b8")


@dataclass
class Terminal:
    """The two ends of a pseudo terminal, and a clock that stands still."""

    ours: int
    theirs: int
    now: float = 100.0

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> str:
        os.set_blocking(self.ours, False)
        try:
            return os.read(self.ours, 100_000).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    found = Terminal(*os.openpty())
    found.resize(24, 80)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "monotonic", lambda: found.now)
    yield found
    os.close(found.ours)
    os.close(found.theirs)


def test_the_line_has_a_row_of_its_own_and_gives_it_back(terminal: Terminal) -> None:
    line = Progress(lambda: (1234, 2468, 2), terminal.theirs)
    line.tick()
    assert terminal.read() == ""
    terminal.now += 83
    line.tick()
    line.tick()
    first = terminal.read()
    assert first.startswith(RESERVE.format(last=23))
    assert DRAWING.findall(first) == [("24", "gradtrace  1,234 steps  2,468 backward calls  2 findings  1:23")]
    terminal.now += 1
    line.tick()
    assert RESERVE.format(last=23) not in (second := terminal.read())
    assert DRAWING.fullmatch(second)
    line.close()
    assert terminal.read() == RELEASE.format(rows=24)
    line.tick()
    line.close()
    assert terminal.read() == ""


def test_the_line_follows_the_size_of_the_window(terminal: Terminal) -> None:
    line = Progress(lambda: (1, 1, 0), terminal.theirs)
    terminal.now += 2
    line.tick()
    terminal.read()
    terminal.resize(10, 12)
    terminal.now += 2
    line.tick()
    out = terminal.read()
    assert out.startswith(RESERVE.format(last=9))
    assert DRAWING.findall(out) == [("10", "gradtrace  ")]
    terminal.resize(2, 80)
    terminal.now += 2
    line.tick()
    assert terminal.read() == ""
    line.close()


def test_a_short_run_shows_none(terminal: Terminal) -> None:
    line = Progress(lambda: (1, 1, 0), terminal.theirs)
    terminal.now += 0.5
    line.tick()
    line.close()
    assert terminal.read() == ""


@pytest.mark.parametrize("what", ["pipe", "dumb", "quiet"])
def test_nowhere_else(what: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    if what == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    line = Progress(lambda: (1, 1, 0), writing if what == "pipe" else terminal.theirs, wanted=what != "quiet")
    terminal.now += 2
    line.tick()
    line.close()
    os.close(writing)
    assert os.read(reading, 100) == b""
    os.close(reading)
    assert terminal.read() == ""


def test_a_check_draws_it_on_the_terminal_alone(
    terminal: Terminal, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_AFTER", 0)
    script = gradtrace.write(TRAIN)
    assert gradtrace.here("check", "-q", script).err == ""
    monkeypatch.setattr(progress, "_terminal", lambda stderr: Descriptor(os.dup(terminal.theirs)))
    done = gradtrace.here("check", script)
    assert done.err == ""
    assert done.out.startswith("step 0\nstep 1\nstep 2\nstep 3\n")
    assert "\x1b" not in done.out
    shown = terminal.read()
    assert DRAWING.findall(shown) == [("24", "gradtrace  0 steps  1 backward calls  0 findings  0:00")]
    assert shown.endswith(RELEASE.format(rows=24))
