"""The events of a run in a file, to be judged again without the script and without torch.

`gradtrace check --record run.jsonl train.py` writes it line by line as things happen, so that it is whole up to the last
event even where the process is killed; `gradtrace check run.jsonl` judges it. Each line is one JSON object, version 1:

    {"format": "gradtrace.events", "version": 1, "gradtrace": "0.1.0", "torch": ..., "script": ..., "directory": ...}
    {"stack": 1, "sites": [{"path": ..., "line": 31, "function": "train"}]}     a stack that later lines name by its number
    {"event": "Backward", "number": 1, "request": "backward", "stack": 1 ...}   what happened: a class of model/events.py
    {"end": {"how": "finished"}, "remarks": [...], "files": [...]}              the last line, if the run came to its end

What has its default is left out. The source lines that a report shows are read from where they lay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import IO, Any, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from gradtrace import __version__
from gradtrace.errors import DocumentError, OutputError
from gradtrace.model import events
from gradtrace.model.events import End, Event
from gradtrace.model.finding import Ended
from gradtrace.model.site import Site, Stack

FORMAT, VERSION = "gradtrace.events", 1
_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Run:
    """What there is to know of a run beside its events."""

    script: str
    torch: str
    directory: str
    ended: Ended = field(default_factory=lambda: Ended("finished"))
    remarks: tuple[str, ...] = ()
    #: all files of the user's code that were loaded
    files: tuple[str, ...] = ()


class Recorder:
    """Writes one run. A disk that is full ends the recording, not the run: `close` then raises `OutputError`."""

    def __init__(self, path: Path, script: str, torch: str) -> None:
        self._path = path
        self._numbers: dict[Stack, int] = {}
        self._failed: OSError | None = None
        try:
            self._file: IO[str] = path.open("w", encoding="utf-8")
        except OSError as error:
            self._fail(error)
        self._line(
            {"format": FORMAT, "version": VERSION, "gradtrace": __version__, "torch": torch, "script": script}
            | {"directory": os.getcwd()}
        )

    def see(self, event: Event) -> None:
        """Writes the event out."""
        self._line({"event": type(event).__name__, **self._plain(event)})

    def close(self, run: Run) -> None:
        """Writes the end of the run."""
        self._line({"end": self._plain(run.ended), "remarks": list(run.remarks), "files": list(run.files)})
        if self._failed is not None:
            self._fail(self._failed)
        self._file.close()

    def _line(self, plain: dict[str, Any]) -> None:
        if self._failed is not None:
            return
        try:
            self._file.write(json.dumps(plain, separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            self._failed = error

    def _plain(self, value: Any) -> Any:
        if is_dataclass(value):
            pairs = ((one, getattr(value, one.name)) for one in fields(value))
            return {one.name: self._plain(held) for one, held in pairs if one.default is MISSING or held != one.default}
        if isinstance(value, tuple) and value and isinstance(value[0], Site):
            return self._stack(value)
        return [self._plain(one) for one in value] if isinstance(value, (tuple, frozenset)) else value

    def _stack(self, stack: Stack) -> int:
        number = self._numbers.get(stack)
        if number is None:
            number = self._numbers[stack] = len(self._numbers) + 1
            self._line({"stack": number, "sites": [site.plain() for site in stack]})
        return number

    def _fail(self, error: OSError) -> NoReturn:
        why = error.strerror or error
        raise OutputError(f"cannot write the recording {self._path}: {why}; name another place") from error


class Recording:
    """One recorded run. Raises `DocumentError` where the file is none, or where a line of it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stacks: dict[int, Stack] = {}
        try:
            self._lines = path.read_bytes().decode().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise DocumentError(f"cannot read the recording {path}: {why}") from error
        head = self._head()
        self.run = Run(str(head["script"]), str(head["torch"]), str(head["directory"]))

    def events(self) -> Iterator[Event]:
        """The events; then `run` is complete. Of a run that was killed the end is made up."""
        last = len(self._lines)
        ended = False
        for number, line in enumerate(self._lines[1:], 2):
            if number == last:  # what follows the last line end was not written in full
                break
            plain = self._object(number, line)
            try:
                if "event" in plain:
                    yield self._read(_KINDS[plain.pop("event")], plain)
                elif "stack" in plain:
                    self._stacks[plain["stack"]] = tuple(self._read(Site, site) for site in plain["sites"])
                else:
                    self._end(plain)
                    ended = True
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise self._damaged(number) from error
        if not ended:
            yield End()
            ended_early = "the recording has no end: the run was killed, and what came later was not judged"
            self._finish(Ended("killed", 137), (ended_early,), ())

    def _head(self) -> dict[str, Any]:
        try:
            head = self._object(1, self._lines[0])
            known = head.get("format") == FORMAT and {"script", "torch", "directory"} <= set(head)
        except DocumentError:
            known = False
        if not known:
            raise DocumentError(f"{self._path} is no recording of gradtrace; make one with check --record")
        if head["version"] != VERSION:
            raise DocumentError(
                f"{self._path} is of version {head['version']}, and this gradtrace reads version {VERSION}; record it anew"
            )
        return head

    def _object(self, number: int, line: str) -> dict[str, Any]:
        try:
            plain = json.loads(line)
        except ValueError as error:
            raise self._damaged(number) from error
        if not isinstance(plain, dict):
            raise self._damaged(number)
        return plain

    def _damaged(self, number: int) -> DocumentError:
        return DocumentError(
            f"line {number} of {self._path} is damaged, or of another version of gradtrace; record it anew"
        )

    def _end(self, plain: dict[str, Any]) -> None:
        self._finish(self._read(Ended, plain["end"]), plain["remarks"], plain["files"])

    def _finish(self, ended: Ended, remarks: Sequence[str], files: Sequence[str]) -> None:
        run = self.run
        self.run = Run(run.script, run.torch, run.directory, ended, tuple(remarks), tuple(files))

    def _read(self, kind: type, plain: dict[str, Any]) -> Any:
        return _made(kind, plain, self._stacks)


_Reader: TypeAlias = Callable[[Any, dict[int, Stack]], Any]


def _made(kind: type, plain: dict[str, Any], stacks: dict[int, Stack]) -> Any:
    readers = _readers(kind)
    return kind(**{name: readers[name](value, stacks) for name, value in plain.items()})


@cache
def _readers(kind: type) -> dict[str, _Reader]:
    """How each field is read back, by its type."""
    hints = get_type_hints(kind, {**vars(events), "Site": Site})
    return {name: _reader(hint) for name, hint in hints.items()}


def _reader(hint: Any) -> _Reader:
    if hint == Stack:
        return lambda value, stacks: stacks[value] if value else ()
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (_reader(one) for one in arguments if one is not NoneType)
        return lambda value, stacks: None if value is None else inner(value, stacks)
    if origin is frozenset or (origin is tuple and arguments[-1] is Ellipsis):
        each = _reader(arguments[0])
        return lambda value, stacks: origin(each(one, stacks) for one in value)
    if origin is tuple:
        parts = [_reader(one) for one in arguments]
        return lambda value, stacks: tuple(part(one, stacks) for part, one in zip(parts, value, strict=True))
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda value, stacks: _made(hint, value, stacks)
    return lambda value, stacks: _plain(hint, value)


def _plain(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
