"""The text of the user's files: every question to the source and every quoted line reads it here.

While a script runs, the text comes through `linecache`, so that a script which came by stdin, or deleted itself, is
still read. When a recording is judged or a saved graph is shown, it comes from that document, and no file is read.
"""

from __future__ import annotations

import linecache
import os
import stat
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: whole files that came with a recording; None while files are read live
_recorded: Mapping[str, Sequence[str]] | None = None
#: single lines that came with a saved graph, by file and line
_saved: dict[tuple[str, int], str] = {}
_forget: list[Callable[[], None]] = []


def cached(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`lru_cache` for answers that follow from the text of files: forgotten when other texts take their place."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        remembered = lru_cache(maxsize=size)(function)
        _forget.append(remembered.cache_clear)
        return remembered  # type: ignore[return-value]  # typeshed's wrapper takes any arguments

    return decorate


@contextmanager
def replayed(files: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """While open, files have these lines, by path, and no others are read. The mapping may still grow."""
    global _recorded
    before = _recorded
    _recorded = files
    _forget_answers()
    try:
        yield
    finally:
        _recorded = before
        _forget_answers()


def recall(found: Mapping[tuple[str, int], str]) -> None:
    """From here on these are the texts of these lines, by file and line, whatever the files say."""
    _saved.update(found)
    _forget_answers()


def _forget_answers() -> None:
    for forget in _forget:
        forget()


def lines(path: str) -> Sequence[str]:
    """The lines of a file with their line ends; none where it is unknown or cannot be read."""
    if _recorded is not None:
        return _recorded.get(path, ())
    return linecache.getlines(path)


def line(path: str, number: int) -> str:
    """One line, counted from 1, with its line end; empty where there is none."""
    saved = _saved.get((path, number))
    if saved is not None:
        return saved
    if _recorded is None:
        return linecache.getline(path, number)
    found = _recorded.get(path, ())
    return found[number - 1] if 0 < number <= len(found) else ""


def lines_around(path: str, number: int, more: int) -> dict[int, str]:
    """The line and `more` on each side, as far as there are any, with their indentation."""
    numbers = range(max(number - more, 1), number + more + 1)
    if (path, number) in _saved:
        return {at: _saved[path, at] for at in numbers if (path, at) in _saved}
    found = {at: line(path, at).rstrip() for at in numbers}
    return found if found[number] else {}


def characters(path: str, number: int, offset: int | None) -> int | None:
    """A column in characters, from one in UTF-8 bytes: Python's code objects and syntax trees count those."""
    if offset is None:
        return None
    text = line(path, number)
    if text.isascii():
        return offset
    return len(text.encode(errors="surrogatepass")[:offset].decode(errors="ignore"))


def changed(files: Iterable[str]) -> list[str]:
    """The files whose text on the disk is no longer the known one. What is gone or is no regular file is not compared."""
    return [path for path in files if _differs(path, lines(path))]


def _differs(path: str, known: Sequence[str]) -> bool:
    try:
        found = os.stat(path)
        longest = 4 * sum(len(text) for text in known) + 4096
        if not known or not stat.S_ISREG(found.st_mode):
            return False
        if found.st_size > longest:
            return True
        with tokenize.open(path) as file:
            text = file.read()
    except OSError:
        return False
    except (SyntaxError, UnicodeError, ValueError):
        return True
    return text.splitlines() != "".join(known).splitlines()
