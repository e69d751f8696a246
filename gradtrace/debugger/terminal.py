"""The terminal at which the user types: whether there is one, and how it is left as it was."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def missing() -> str:
    """Why there is no terminal to type at; empty where there is one."""
    for name, number in (("stdin", 0), ("stdout", 1)):
        if not os.isatty(number):
            return f"{name} is not a terminal"
    return ""


@contextmanager
def kept() -> Iterator[None]:
    """Puts the terminal's settings back in the end, whatever became of them."""
    settings = _settings()
    try:
        yield
    finally:
        if settings is not None:
            import termios

            with suppress(termios.error, ValueError, OSError):
                termios.tcsetattr(0, termios.TCSADRAIN, settings)


def _settings() -> list[Any] | None:
    try:
        import termios

        return termios.tcgetattr(0)
    except Exception:  # noqa: BLE001 - no terminal, or a system without termios
        return None


@contextmanager
def at_prompt() -> Iterator[None]:
    """While open, the standard streams are those of the terminal, whatever the script has put in their place, and Ctrl-C
    interrupts what was typed."""
    streams = sys.stdin, sys.stdout
    for stream in (sys.stdout, sys.stderr, sys.__stdout__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    sys.stdin, sys.stdout = sys.__stdin__ or sys.stdin, sys.__stdout__ or sys.stdout
    handler = None
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        sys.stdin, sys.stdout = streams
